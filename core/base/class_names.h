// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Names of a head's classes, for everything that people read. Threads: any.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace headscope {

/// By class, from id2label of a config.json, or of the one that an analysis keeps as `original`. Empty strings have no
/// name: transformers writes LABEL_2 for such a class. No vector at all where no class has one, or for text that is no
/// such file.
std::vector<std::string> class_names(const std::string& config_json);

/// The name, else the number from 0.
std::string class_name(std::span<const std::string> names, std::int64_t number);

/// Those of all `classes` classes of a head.
std::vector<std::string> all_class_names(const std::string& config_json, std::int64_t classes);

}  // namespace headscope

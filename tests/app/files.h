// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Files for tests of the command line: the bundled sample, and spoilt copies of it.

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/core/base/temporary_folder.h"

namespace headscope::testing {

using test::read_file;
using test::TemporaryFolder;
using test::write_file;

/// The bundled sample checkpoint.
std::filesystem::path sample();

/// A JSON array of arrays of ids, for --tokens; ids repeat in a pattern that is the same every time.
std::filesystem::path write_tokens(const std::filesystem::path& path, const std::vector<int>& lengths);

/// A folder with the sample's files as symbolic links, but for those that the caller then writes.
std::filesystem::path linked_sample(const std::filesystem::path& folder, const std::vector<std::string>& without);

/// The sample with a changed config.json.
std::filesystem::path sample_with_config(const std::filesystem::path& folder,
                                         const std::function<void(nlohmann::json&)>& change);

/// The sample with changed bytes of model.safetensors.
std::filesystem::path sample_with_weights(const std::filesystem::path& folder, std::string_view bytes);

/// The checkpoint of a case of tests/oracle/models/data, with weights that only have to be finite.
std::filesystem::path golden_sample(const std::filesystem::path& folder, const std::string& name);

}  // namespace headscope::testing

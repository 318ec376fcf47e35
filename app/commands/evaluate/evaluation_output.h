// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/store/evaluation/evaluation_file.h"

namespace headscope::app {

/// Throws UsageError for a name of -o that says no kind of file.
void check_evaluation_name(const std::string& output);

/// Models, results and settings as one document.
nlohmann::json evaluation_json(const store::Evaluation& evaluation);

/// A line a result, for people.
void print_evaluation(const store::Evaluation& evaluation);

/// As the name's ending says: .h5, .csv or .json. `inputs` must not be overwritten.
void write_evaluation_as(const std::filesystem::path& path, const store::Evaluation& evaluation,
                         const std::vector<std::filesystem::path>& inputs);

}  // namespace headscope::app

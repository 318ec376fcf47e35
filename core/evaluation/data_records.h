// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "core/base/json/json.h"

namespace headscope::evaluation {

/// read_json_records(), or the same of the rows of a .parquet file, with "FILE:ROW" as their places.
std::string read_data_records(const std::filesystem::path& path, const std::string& kind,
                              const std::function<bool(const JsonView& record)>& take);

}  // namespace headscope::evaluation

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "core/base/json/json.h"

namespace headscope {

/// The objects of a file in order: one a line (lines end at \n only, blank ones are passed over), or, where the name
/// ends in .json and the file begins with [, the entries of that array, or there one object over several lines;
/// unpacked where the name ends in .gz behind that. Each is given to `take` with "FILE:LINE" as its place, until it
/// says false. `kind` names the file in errors: "items of piqa".
///
/// Gives the SHA-256 of the file as it lies there. Memory: the file, unpacked, and one object. Error: io; limit beyond
/// 2 GiB; usage where there is no object; format with FILE:LINE. Can be stopped by a CancellationScope.
std::string read_json_records(const std::filesystem::path& path, const std::string& kind,
                              const std::function<bool(const JsonView& record)>& take);

}  // namespace headscope

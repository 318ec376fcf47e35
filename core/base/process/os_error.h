// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>

#include "core/base/error.h"

namespace headscope {

/// Text of an operating system error: ours where the system's misleads ("found no space left on the device", "found
/// that permission is denied"), else "found: " and the system's.
std::string os_error_text(int number);

/// An Error about `path` made from errno's value: [path] expected; found ... Code io (memory for ENOMEM).
/// `expected` says what was tried: "expected to write this file".
Error os_error(int number, const std::filesystem::path& path, std::string expected);

/// A path as shown in errors: escaped, and long enough for any that the system takes; "" for an empty one.
std::string shown(const std::filesystem::path& path);

/// Kind of file of a mode of stat(2): "a folder", "a named pipe", "a character device", ...
std::string file_kind(unsigned mode);

}  // namespace headscope

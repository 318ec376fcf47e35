// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "core/base/io/input_file.h"

namespace headscope::data {

/// Bytes of a source's content and the place of the first of them, from 0 on. False: no more are wanted.
using TakeBytes = std::function<bool(std::string_view bytes, std::uint64_t at)>;
using BytesRead = std::function<void(std::uint64_t bytes)>;

/// The name without .gz or .zst: its extension says what a source holds.
std::filesystem::path unpacked_name(const std::filesystem::path& path);

/// Hands on a source's content front to back, without a byte order mark, unpacked where the file's name ends in .gz or
/// .zst. `progress` receives the position in the file. Errors: those of InputFile and Decompressor.
void read_source(const InputFile& file, const TakeBytes& take, const BytesRead& progress);

}  // namespace headscope::data

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/base/io/input_file.h"
#include "core/checkpoint/pytorch/pickle_objects.h"
#include "core/checkpoint/pytorch/zip_archive.h"

namespace headscope::checkpoint {

/// A file as torch.save wrote it before version 1.6: pickles one behind the other - a number that says what the file
/// is, the protocol, facts of the machine, the value, the keys of its storages - and behind them each storage in the
/// order of its keys, a number of elements (8 bytes) and these.
struct LegacyFile {
    PickleObjects objects;  ///< of the value
    std::string where;      ///< its place, for errors
    std::map<std::string, ZipExtent, std::less<>> storages;
};

/// By a file's first bytes (32 are enough).
bool is_legacy_pytorch(std::string_view first_bytes);

/// Reads the pickles (pickle_reader.h), at most the file's first 256 MB, and finds each storage: as many elements as
/// the pickle says, within the file, none left out, nothing behind the last. No numbers are read. Errors: format,
/// unsupported (big-endian, another protocol, storages that are views of others), limit.
LegacyFile read_legacy_file(const InputFile& file);

}  // namespace headscope::checkpoint

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// JSON objects of a file one by one, in bounded memory: of JSON lines, of one array, or of Parquet's rows. Error: limit
// for an object beyond 64 MiB; format for an array that is not whole.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/io/input_file.h"
#include "core/data/source/source_bytes.h"
#include "core/data/source/source_files.h"

namespace headscope::data {

/// A record's JSON, and the line of the file where it begins, or the row, from 1 on.
using TakeRecord = std::function<void(std::string_view text, std::uint64_t line)>;

/// json_array for a file whose first character is [, json_lines for one whose first line is an object. Error format
/// for any other.
SourceKind json_kind(const InputFile& file);

/// Reads the records of a file of a kind that has_columns(). `take` checks that a record is a valid object. `columns`:
/// those that `take` uses, all if empty; a Parquet file's others are not read.
void read_records(const InputFile& file, SourceKind kind, const TakeRecord& take, const BytesRead& progress,
                  const std::vector<std::string>& columns = {});

}  // namespace headscope::data

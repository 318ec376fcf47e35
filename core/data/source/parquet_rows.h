// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/base/io/input_file.h"
#include "core/data/source/json_objects.h"

namespace headscope::data {

/// Why no Parquet can be read: libheadscope_parquet.so, which holds Apache Arrow, is opened at first use. Empty if it
/// can. Threads: any.
const std::string& parquet_problem();

/// Hands on the rows of a Parquet file as JSON objects, in order, with their numbers from 1 on, as read_records() does
/// with lines. `columns`: those to read, dots lead into structs; empty: all that JSON can hold. Errors: unsupported
/// without the library, for codecs, and for a column that JSON cannot hold; format for a file that is not whole; limit.
void read_parquet_rows(const InputFile& file, const TakeRecord& take, const BytesRead& progress,
                       const std::vector<std::string>& columns);

}  // namespace headscope::data

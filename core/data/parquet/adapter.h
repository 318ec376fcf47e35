// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Interface between the program and libheadscope_parquet.so, which holds all code that includes Apache Arrow. One
// compiler builds both; no exception crosses.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headscope::data::parquet {

constexpr std::uint32_t adapter_version = 1;
constexpr const char* adapter_file = "libheadscope_parquet.so";
constexpr const char* adapter_entry = "headscope_parquet_reader";

enum class Outcome {
    done,
    stopped,      ///< a function of the host returned false
    damaged,      ///< no Parquet file, or a cut or corrupt one
    unsupported,  ///< a type, encoding or codec without a reader
    memory,       ///< more than largest_memory at once
};

struct Result {
    Outcome outcome = Outcome::done;
    std::string found;  ///< one line; empty if done or stopped
};

/// The file, and the consumer of its rows. All calls come from the thread that reads. False: stop.
class Host {
public:
    virtual ~Host() = default;
    virtual std::uint64_t size() const noexcept = 0;
    virtual bool read(std::uint64_t offset, void* to, std::size_t size) noexcept = 0;
    /// The next row as a JSON object, of `rows` in the file.
    virtual bool row(std::string_view json, std::uint64_t rows) noexcept = 0;
};

/// Bytes that Arrow may hold at once.
constexpr std::int64_t largest_memory = std::int64_t{1} << 30;

/// Hands on all rows, row group by row group, in pieces of some 8 MiB. `columns`: names, with dots into structs; empty:
/// all columns but those of types that JSON lacks (binary, times, decimals, maps), which are refused where they are
/// named. NaN and infinities become null, as in JSON lines written by pandas.
using ReadRows = Result (*)(Host& host, const std::vector<std::string>& columns) noexcept;

/// The library's one symbol, `adapter_entry`. Null for another version.
using Entry = ReadRows (*)(std::uint32_t version) noexcept;

}  // namespace headscope::data::parquet

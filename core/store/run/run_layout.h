// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Shared by run_file_write.cpp and run_file_read.cpp. Private to core/store.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/store/run/run_record.h"

namespace headscope::store {

inline constexpr const char* kRunFormat = "headscope-run";
/// 1: texts of fixed length, thumbnails in float16.
inline constexpr std::int32_t kRunVersion = 2;
inline constexpr std::size_t kLongestLogLine = 4096, kLongestSample = 16384;

/// A column of a table whose rows are structs: /snapshots, /controls, /samples, /log.
template <class Row>
struct RunColumn {
    const char* name;
    std::variant<std::string Row::*, std::int64_t Row::*, double Row::*, bool Row::*> member;
    const char* units;
    const char* long_name;
    std::size_t most_bytes = kLongestLogLine;  ///< of a text
};
const std::vector<RunColumn<RunSnapshot>>& snapshot_columns();
const std::vector<RunColumn<RunControl>>& control_columns();
const std::vector<RunColumn<RunSample>>& sample_columns();
const std::vector<RunColumn<RunLogLine>>& log_columns();

/// A column of /training or /validation beside its scale, `step`.
template <class Table>
struct RunSeries {
    const char* name;
    std::variant<std::vector<std::int64_t> Table::*, std::vector<double> Table::*> member;
    const char* units;
    const char* long_name;
    bool late = false;  ///< older files lack it: it is NaN there
};
const std::vector<RunSeries<RunSteps>>& training_series();
const std::vector<RunSeries<RunValidations>>& validation_series();

/// Text attributes of the file, and whole numbers.
struct RunText {
    const char* name;
    std::string RunRecord::*member;
    bool late = false;  ///< older files lack it: it is empty there
};
const std::vector<RunText>& run_texts();
struct RunNumber {
    const char* name;
    std::int64_t RunRecord::*member;
};
const std::vector<RunNumber>& run_numbers();

/// Text and number columns of /sites.
struct SiteText {
    const char* name;
    std::string Site::*member;
    const char* long_name;
};
const std::vector<SiteText>& site_texts();
struct SiteNumber {
    const char* name;
    std::variant<std::int32_t Site::*, bool Site::*> member;
    const char* long_name;
    bool late = false;  ///< older files lack it: it is 0 there
};
const std::vector<SiteNumber>& site_numbers();

/// Lower case letters, digits, underscores: what an indicator may be called, being a part of a path.
bool is_indicator_name(std::string_view name);
/// Values a head: 4 for local_focus, else 1. 0: one a site (head_diversity).
std::int64_t indicator_width(std::string_view name);

}  // namespace headscope::store

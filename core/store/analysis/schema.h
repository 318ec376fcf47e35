// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The one table of what is in an analysis file: paths, shapes, types, dimension scales, units. The writer creates what
// it lists, the reader and the check before publishing compare with it. docs/file-formats.md says the same to people.

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/store/analysis/analysis_header.h"
#include "core/store/hdf5/hdf5.h"
#include "kernels/indicators.h"
#include "kernels/statistics.h"

namespace headscope::store {

/// 1: texts of fixed length, thumbnails in float16.
inline constexpr std::int32_t format_version = 2;
inline constexpr const char* format_name = "headscope-analysis";
/// Written at a run's end, where there are any (AnalysisWriter::write_problems): in no Schema.
inline constexpr const char* problems_path = "/problems";
/// Implicit matrices: the largest magnitude of A v - o, where o is the layer's output from its state.
inline constexpr const char* largest_deviation = "largest_deviation";
/// Room for the longest of the texts that a score rule holds ("taylor_diagonal_per_order", "clamp").
inline constexpr std::size_t rule_text_room = 32;

/// A dimension scale: a dataset whose values label a dimension. Its path is the dimension's name.
struct ScaleSpec {
    std::string path;
    std::int64_t size = 0;
    std::string long_name;
    std::vector<double> values;  ///< empty: 0, 1, 2, ..., as int32; otherwise float64
    std::string units;
    bool bare = false;  ///< a length without numbers: takes no room in the file
};

enum class Fill {
    absent,  ///< NaN, -1, empty text, 0 counts, written when the file is created
    none,    ///< allocated, written once by its computation: large records on request
};

struct DatasetSpec {
    std::string path;
    hdf5::Type type = hdf5::Type::float64;
    std::vector<std::string> dimensions;  ///< paths of scales
    hdf5::Shape shape;
    std::string units, long_name;
    Fill fill = Fill::absent;
    std::size_t text_bytes = 0;  ///< of the longest text, for what a file will take
    bool scaled = false;         ///< int16: numbers are the stored ones times a scale_factor
    bool compared = false;       ///< an implicit matrix: it has the attribute largest_deviation
    std::int64_t chunk = 0;      ///< > 0: one dimension, deflated in pieces of this length; 0: contiguous
};

struct Schema {
    std::vector<ScaleSpec> scales;
    std::vector<DatasetSpec> datasets;
    const DatasetSpec* find(const std::string& path) const;  ///< nullptr when the file has no such dataset
    std::unordered_map<std::string, std::size_t> places;     ///< in `datasets`, by path; made with them
};

/// Everything that a file of this header holds.
Schema make_schema(const AnalysisHeader& header);

/// Pairs: mean attention from region to region, one dataset each. Number 3 * from + to, with 0 the inserted tokens, 1
/// A, 2 B.
const std::array<const kernels::Indicator*, 9>& region_indicators();

/// Stream names are parts of paths: letters, digits and underscores.
bool is_stream_name(const std::string& name);
std::int64_t thumbnail_size(const AnalysisHeader& header);
std::string map_group(std::int64_t s, std::int64_t site);       ///< /maps/<s>/<site>
std::string attention_path(std::int64_t s, std::int64_t site);  ///< /attention/<s>/<site>
std::string products_path(std::int64_t s, std::int64_t site);   ///< /value_products/<s>/<site>
std::string implicit_path(std::int64_t s, std::int64_t site);   ///< /implicit_attention/<s>/<site>

}  // namespace headscope::store

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/analysis/file_size.h"

#include "core/store/analysis/schema.h"

namespace headscope::store {
namespace {

// An object of an HDF5 file: header, attributes, a link and the references between it and its scales; measured.
constexpr double dataset_overhead = 950, scale_overhead = 900, file_overhead = 5000;

}  // namespace

double expected_file_bytes(const AnalysisHeader& header) {
    const Schema schema = make_schema(header);
    double bytes = file_overhead + static_cast<double>(header.settings_json.size());
    for (const DatasetSpec& spec : schema.datasets) {
        double size = spec.type == hdf5::Type::text ? static_cast<double>(spec.text_bytes)
                                                    : static_cast<double>(hdf5::type_size(spec.type));
        for (const std::int64_t dimension : spec.shape) size *= static_cast<double>(dimension);
        bytes += size + dataset_overhead;
    }
    for (const ScaleSpec& spec : schema.scales)
        bytes += static_cast<double>(spec.size) * (spec.values.empty() ? 4 : 8) + scale_overhead;
    return bytes;
}

}  // namespace headscope::store

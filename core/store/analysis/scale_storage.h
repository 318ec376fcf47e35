// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/store/hdf5/hdf5.h"
#include "core/store/analysis/schema.h"

namespace headscope::store {

/// Creates a dimension scale with its values. Missing groups are created.
hdf5::Handle create_scale(hid_t file, const ScaleSpec& spec, const std::string& where);

/// An attribute of int16 datasets, float32: a number is the stored one times this.
inline constexpr const char* scale_factor = "scale_factor";

/// Creates a dataset: contiguous and allocated at once, or deflated in chunks; filled as `spec` says, with long_name,
/// units and dimension labels, and of int16 a scale_factor of 1, to be overwritten. Scales are attached separately.
hdf5::Handle create_dataset(hid_t file, const DatasetSpec& spec, const std::string& where);

void attach_scale(hid_t dataset, hid_t scale, std::size_t dimension, const std::string& where);

}  // namespace headscope::store

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/store/hdf5.h"
#include "core/store/schema.h"

namespace headscope::store {

/// Creates a dimension scale with its values. Missing groups are created.
hdf5::Handle create_scale(hid_t file, const ScaleSpec& spec, const std::string& where);

/// Creates a dataset: contiguous, allocated at once, filled as `spec` says, with long_name, units and dimension labels.
/// Scales are attached separately.
hdf5::Handle create_dataset(hid_t file, const DatasetSpec& spec, const std::string& where);

void attach_scale(hid_t dataset, hid_t scale, std::size_t dimension, const std::string& where);

}  // namespace headscope::store

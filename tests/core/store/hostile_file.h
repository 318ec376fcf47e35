// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Files that our writer never makes: a good one, changed through HDF5 itself.

#include <hdf5.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <vector>

#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"

namespace headscope::tests {

inline std::filesystem::path changed_file(const test::TemporaryFolder& folder,
                                          const std::function<void(hid_t)>& change) {
    const auto path = folder / "a.headscope.h5";
    write_synthetic_analysis(path);
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    REQUIRE(file >= 0);
    change(file);
    REQUIRE(H5Fclose(file) >= 0);
    return path;
}

inline void replace(hid_t file, const char* name, hid_t type, std::vector<hsize_t> dims, hid_t list) {
    REQUIRE(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
    const hid_t space = H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr);
    const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    REQUIRE(dataset >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
}

inline hid_t new_list() {
    return H5Pcreate(H5P_DATASET_CREATE);
}

}  // namespace headscope::tests

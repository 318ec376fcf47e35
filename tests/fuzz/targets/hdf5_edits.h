// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace headscope::fuzz {

/// Paths of all groups and datasets of an HDF5 file, "/" first, and the names of each one's attributes.
struct HdfObject {
    std::string path;
    bool is_group = false;
    std::vector<std::string> attributes;
};
std::vector<HdfObject> list_objects(const std::filesystem::path& path);

/// Changes an HDF5 file through HDF5 itself, as a foreign writer could: each edit is taken from the front of `edits`
/// (what, at which object, with which of some awkward types, sizes, layouts and values). Edits that HDF5 does not allow
/// are skipped.
void apply_edits(const std::filesystem::path& path, const std::vector<HdfObject>& objects, std::string_view edits);

}  // namespace headscope::fuzz

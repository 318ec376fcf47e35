// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/memory_file.h"

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

/// A file that is written once, and of which every input gets a copy with its edits.
class EditedFile {
public:
    explicit EditedFile(const std::function<void(const std::filesystem::path&)>& write);

    /// The copy's path; the next call overwrites it.
    std::filesystem::path edited(std::string_view edits) const;
    /// A file of these bytes at that path.
    std::filesystem::path replaced(std::string_view bytes) const;

private:
    MemoryFolder folder_;
    std::string bytes_;
    std::vector<HdfObject> objects_;
};

}  // namespace headscope::fuzz

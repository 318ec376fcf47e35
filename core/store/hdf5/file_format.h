// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>

namespace headscope::store {

/// True for a regular file that begins as HDF5 files do, at byte 0 or behind a user's block of at most 1 MiB. Reads
/// only those bytes: the library is not asked.
bool looks_like_hdf5(const std::filesystem::path& path);

/// The attribute `format` of an HDF5 file ("headscope-analysis", "headscope-run", ...), escaped; empty without one.
/// Throws Error if the library cannot open the file. Under Hdf5Lock.
std::string hdf5_format(const std::filesystem::path& path);

}  // namespace headscope::store

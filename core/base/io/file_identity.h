// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace headscope {

/// Identity of the file that a path resolves to, at one time. Equal identities mean equal bytes, unless times are
/// forged or the file is rewritten in place twice within one clock tick.
struct FileIdentity {
    std::uint64_t device = 0, number = 0;
    std::int64_t modified = 0;  ///< nanoseconds since 1970

    bool operator==(const FileIdentity&) const = default;
};

/// Empty if nothing exists there or the disk cannot report it. Queries the disk.
std::optional<FileIdentity> identity_of(const std::filesystem::path& path);

}  // namespace headscope

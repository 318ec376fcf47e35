// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace headscope {

/// Which file a path ends at, and as of when: two paths with the same one hold the same bytes, as long as nobody
/// forges times or writes in place twice within a turn of the clock.
struct FileIdentity {
    std::uint64_t device = 0, number = 0;
    std::int64_t modified = 0;  ///< nanoseconds since 1970

    bool operator==(const FileIdentity&) const = default;
};

/// Empty where nothing is there or it cannot be told. Asks the disk.
std::optional<FileIdentity> identity_of(const std::filesystem::path& path);

}  // namespace headscope

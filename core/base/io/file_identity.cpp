// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/io/file_identity.h"

#include <sys/stat.h>

namespace headscope {

std::optional<FileIdentity> identity_of(const std::filesystem::path& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return std::nullopt;
    return FileIdentity{status.st_dev, status.st_ino,
                        std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

}  // namespace headscope

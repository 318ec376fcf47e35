// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/process/os_error.h"

#include <sys/stat.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace headscope {

std::string os_error_text(int number) {
    switch (number) {
        case ENOSPC:
            return "found no space left on the device";
        case EDQUOT:
            return "found the disk quota used up";
        case EFBIG:
            return "found that the file would pass the size limit of the system or the process";
        case EACCES:
        case EPERM:
            return "found that permission is denied";
        case EROFS:
            return "found a read-only file system";
        case ENOENT:
            return "found nothing there";
        case ENOTDIR:
            return "found a part of the path that is not a folder";
        case EISDIR:
            return "found a folder";
        case ENAMETOOLONG:
            return "found a name that is too long for the file system";
        case ELOOP:
            return "found symbolic links that go round in a circle";
        case EIO:
            return "found an input/output error of the device";
        default:
            return "found: " + std::generic_category().message(number);
    }
}

Error os_error(int number, const std::filesystem::path& path, std::string expected) {
    const ErrorCode code = number == ENOMEM ? ErrorCode::memory : ErrorCode::io;
    return {code, shown(path), std::move(expected), os_error_text(number)};
}

std::string shown(const std::filesystem::path& path) {
    return path.empty() ? "\"\"" : escaped(path.native(), 4096);
}

std::string file_kind(unsigned mode) {
    switch (mode & static_cast<unsigned>(S_IFMT)) {
        case S_IFREG:
            return "a regular file";
        case S_IFDIR:
            return "a folder";
        case S_IFIFO:
            return "a pipe";
        case S_IFSOCK:
            return "a socket";
        case S_IFCHR:
            return "a character device";
        case S_IFBLK:
            return "a block device";
        case S_IFLNK:
            return "a symbolic link";
        default:
            return "a file of an unknown kind";
    }
}

}  // namespace headscope

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/io/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "core/base/process/os_error.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

constexpr int most_partials = 99;
constexpr std::uint64_t flush_bytes = 32U << 20U;
constexpr std::size_t largest_write = std::size_t{1} << 30U;

fs::path folder_of(const fs::path& path) {
    return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

std::optional<struct stat> status_of(const fs::path& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return std::nullopt;
    return status;
}

/// Follows the target's links, so that the temporary lies beside the file that is replaced.
fs::path resolved(const fs::path& target) {
    struct stat status {};
    if (::lstat(target.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return target;
    std::error_code error;
    fs::path real = fs::canonical(target, error);
    if (error) throw os_error(error.value(), target, "expected a symbolic link that ends at a regular file");
    return real;
}

}  // namespace

void OutputFile::check_target(const fs::path& target, std::span<const fs::path> inputs) {
    constexpr auto wanted = "expected the name of a new file or of a regular file to replace";
    const std::string name = target.filename().string();
    if (name.empty() || name == "." || name == "..") {
        throw Error(ErrorCode::usage, shown(target), wanted,
                    target.empty() ? "found no name" : "found a folder's name");
    }
    if (target.native().find('\0') != std::string::npos) {
        throw Error(ErrorCode::usage, shown(target), wanted, "found a NUL character in the name");
    }
    struct stat status {};
    if (::stat(target.c_str(), &status) == 0) {
        if (!S_ISREG(status.st_mode)) {
            throw Error(ErrorCode::usage, shown(target), wanted, "found " + file_kind(status.st_mode));
        }
        for (const fs::path& input : inputs) {
            if (same_file(target, input))
                throw Error(ErrorCode::usage, shown(target), "expected an output that is not an input",
                            "found the same file as " + shown(input));
        }
        if (::access(target.c_str(), W_OK) != 0) throw os_error(errno, target, "expected a file that may be replaced");
    } else if (errno != ENOENT) {
        throw os_error(errno, target, wanted);
    } else if (::lstat(target.c_str(), &status) == 0 && S_ISLNK(status.st_mode)) {
        // Anything else appeared between the two calls: another process just finished the same output.
        throw Error(ErrorCode::usage, shown(target), wanted, "found a symbolic link to a missing file");
    }
    const fs::path folder = folder_of(target);
    const auto parent = status_of(folder);
    if (!parent) throw os_error(errno, folder, "expected a folder for the output");
    if (!S_ISDIR(parent->st_mode)) {
        throw Error(ErrorCode::usage, shown(folder), "expected a folder for the output",
                    "found " + file_kind(parent->st_mode));
    }
    if (::access(folder.c_str(), W_OK | X_OK) != 0) {
        throw os_error(errno, folder, "expected a folder that may be written");
    }
}

OutputFile::OutputFile(const fs::path& target, std::span<const fs::path> inputs, std::string kind)
    : inputs_(inputs.begin(), inputs.end()), kind_(std::move(kind)) {
    check_target(target, inputs);
    target_ = resolved(target);
    for (int attempt = 1; attempt <= most_partials; ++attempt) {
        partial_ = target_;
        partial_ += attempt == 1 ? ".partial" : "." + std::to_string(attempt) + ".partial";
        descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (descriptor_ >= 0) break;
        if (errno != EEXIST) throw os_error(errno, partial_, wish());
    }
    if (descriptor_ < 0) {
        throw Error(ErrorCode::io, shown(target_), "expected a free temporary name beside it",
                    "found all of .partial to ." + std::to_string(most_partials) +
                        ".partial in use; remove those of jobs that are gone");
    }
    if (const auto old = status_of(target_)) {
        // Best effort: a file system without modes still takes the file.
        [[maybe_unused]] const int ignored = ::fchmod(descriptor_, old->st_mode & 0777U);
    }
}

OutputFile::~OutputFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!published_ && !keep_) ::unlink(partial_.c_str());
}

void OutputFile::append(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), largest_write));
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) throw os_error(errno, partial_, wish());
        if (written == 0) throw os_error(ENOSPC, partial_, wish());
        bytes.remove_prefix(static_cast<std::size_t>(written));
        appended_ += static_cast<std::uint64_t>(written);
    }
    flush_behind();
}

void OutputFile::flush_behind() {
    if (appended_ - handed_on_ < flush_bytes) return;
    // Hints only: the sync that counts is publish()'s, and errors show there.
    const auto before = static_cast<off_t>(flushed_);
    const auto start = static_cast<off_t>(handed_on_);
    [[maybe_unused]] int ignored =
        ::sync_file_range(descriptor_, before, start - before,
                          SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    ignored = ::sync_file_range(descriptor_, start, static_cast<off_t>(appended_) - start, SYNC_FILE_RANGE_WRITE);
    flushed_ = handed_on_;
    handed_on_ = appended_;
}

void OutputFile::publish() {
    // A writer by path may have replaced the file, so what lies at the path now is what is synced.
    if (descriptor_ >= 0 && ::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) {
        throw os_error(errno, partial_, wish());
    }
    descriptor_ = ::open(partial_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor_ < 0) throw os_error(errno, partial_, wish());
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) throw os_error(errno, partial_, wish());
    if (!S_ISREG(status.st_mode)) {
        throw Error(ErrorCode::io, shown(partial_), "expected the temporary to be a regular file",
                    "found " + file_kind(status.st_mode));
    }
    if (::fsync(descriptor_) != 0) throw os_error(errno, partial_, wish());
    check_target(target_, inputs_);
    if (::rename(partial_.c_str(), target_.c_str()) != 0) throw os_error(errno, target_, wish());
    published_ = true;
    sync_folder(folder_of(target_));
}

bool same_file(const fs::path& a, const fs::path& b) {
    const auto first = status_of(a), second = status_of(b);
    if (first && second) return first->st_dev == second->st_dev && first->st_ino == second->st_ino;
    if (first || second) return false;
    std::error_code error, other_error;
    const fs::path whole = fs::weakly_canonical(fs::absolute(a, error), error),
                   other = fs::weakly_canonical(fs::absolute(b, other_error), other_error);
    return !error && !other_error && whole == other;
}

void write_whole_file(const fs::path& target, std::string_view bytes, std::string kind,
                      std::span<const fs::path> inputs) {
    OutputFile file(target, inputs, std::move(kind));
    file.append(bytes);
    file.publish();
}

void sync_folder(const fs::path& folder) {
    const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    // A folder that may be written but not read cannot be synced; neither can folders of some network file systems.
    if (descriptor < 0 && (errno == EACCES || errno == EPERM)) return;
    if (descriptor < 0) throw os_error(errno, folder, "expected to sync this folder");
    const int result = ::fsync(descriptor);
    const int number = errno;
    ::close(descriptor);
    if (result != 0 && number != EINVAL && number != ENOTSUP && number != ENOSYS && number != EBADF) {
        throw os_error(number, folder, "expected to sync this folder");
    }
}

void remove_link(const fs::path& path) noexcept {
    std::error_code ignored;
    if (fs::is_symlink(path, ignored)) fs::remove(path, ignored);
}

}  // namespace headscope

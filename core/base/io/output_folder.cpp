// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/io/output_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "core/base/io/output_file.h"
#include "core/base/process/os_error.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

constexpr int most_partials = 99;

/// Absolute, links resolved as far as the path exists, without a slash at its end: what can be renamed to.
fs::path resolved(const fs::path& destination) {
    std::error_code error;
    fs::path path = fs::weakly_canonical(fs::absolute(destination, error), error);
    if (error) throw os_error(error.value(), destination, "expected a path for the output folder");
    return path.has_filename() ? path : path.parent_path();
}

}  // namespace

void OutputFolder::check_target(const fs::path& destination, std::span<const fs::path> inputs) {
    constexpr auto wanted = "expected the name of a new or an empty folder";
    if (destination.empty() || destination.native().find('\0') != std::string::npos) {
        throw Error(ErrorCode::usage, shown(destination), wanted, "found no name or a NUL character in it");
    }
    struct stat status {};
    if (::stat(destination.c_str(), &status) == 0) {
        for (const fs::path& input : inputs) {
            if (same_file(destination, input))
                throw Error(ErrorCode::usage, shown(destination), "expected an output that is not an input",
                            "found the same folder as " + shown(input));
        }
        if (!S_ISDIR(status.st_mode)) {
            throw Error(ErrorCode::usage, shown(destination), wanted, "found " + file_kind(status.st_mode));
        }
        std::error_code error;
        const bool empty = fs::is_empty(destination, error);
        if (error) throw os_error(error.value(), destination, wanted);
        if (!empty) throw Error(ErrorCode::usage, shown(destination), wanted, "found a folder that is not empty");
        return;
    }
    if (errno != ENOENT) throw os_error(errno, destination, wanted);
    if (::lstat(destination.c_str(), &status) == 0) {
        // A folder that appeared between the two calls, made by another process, is judged as one.
        if (!S_ISLNK(status.st_mode)) return check_target(destination, inputs);
        throw Error(ErrorCode::usage, shown(destination), wanted, "found a symbolic link to a missing file");
    }
    const fs::path parent = resolved(destination).parent_path();
    if (::stat(parent.c_str(), &status) != 0) throw os_error(errno, parent, "expected a folder for the output");
    if (!S_ISDIR(status.st_mode)) {
        throw Error(ErrorCode::usage, shown(parent), "expected a folder for the output",
                    "found " + file_kind(status.st_mode));
    }
    if (::access(parent.c_str(), W_OK | X_OK) != 0) {
        throw os_error(errno, parent, "expected a folder that may be written");
    }
}

OutputFolder::OutputFolder(const fs::path& destination, std::span<const fs::path> inputs, std::string kind)
    : kind_(std::move(kind)) {
    check_target(destination, inputs);
    target_ = resolved(destination);
    for (int attempt = 1; attempt <= most_partials; ++attempt) {
        partial_ = target_;
        partial_ += attempt == 1 ? ".partial" : "." + std::to_string(attempt) + ".partial";
        if (::mkdir(partial_.c_str(), 0777) == 0) return;
        if (errno != EEXIST) throw os_error(errno, partial_, "expected to write this " + kind_);
    }
    throw Error(ErrorCode::io, shown(target_), "expected a free temporary name beside it",
                "found all of .partial to ." + std::to_string(most_partials) +
                    ".partial in use; remove those of jobs that are gone");
}

OutputFolder::~OutputFolder() {
    if (published_) return;
    std::error_code ignored;
    fs::remove_all(partial_, ignored);
}

void OutputFolder::publish() {
    sync_folder(partial_);
    check_target(target_);
    if (::rename(partial_.c_str(), target_.c_str()) != 0) {
        throw os_error(errno, target_, "expected to write this " + kind_);
    }
    published_ = true;
    sync_folder(target_.parent_path());
}

}  // namespace headscope

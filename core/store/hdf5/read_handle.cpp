// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/hdf5/read_handle.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <set>

#include "core/base/error.h"
#include "core/base/process/os_error.h"
#include "core/store/hdf5/hdf5_driver.h"

namespace headscope::store {
namespace {

std::set<ReadHandle*>& all_handles() {
    static auto* const handles = new std::set<ReadHandle*>;  // as the lock, for threads that outlive main()
    return *handles;
}

/// Those that HDF5 has open, the one that was used last at the end.
std::list<ReadHandle*>& open_handles() {
    static auto* const handles = new std::list<ReadHandle*>;
    return *handles;
}

}  // namespace

ReadHandle::ReadHandle(const std::filesystem::path& path) : path_(path), where_(shown(path)) {
    const std::string wish = "expected an analysis file that can be read";
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor_ < 0) throw os_error(errno, path, wish);
    struct stat status {};
    const int result = ::fstat(descriptor_, &status);
    const int number = errno;
    if (result != 0 || !S_ISREG(status.st_mode)) {
        ::close(descriptor_);
        if (result != 0) throw os_error(number, path, wish);
        throw Error(ErrorCode::io, where_, "expected an analysis file", "found " + file_kind(status.st_mode));
    }
    device_ = status.st_dev;
    inode_ = status.st_ino;
    all_handles().insert(this);
}

ReadHandle::~ReadHandle() {
    all_handles().erase(this);
    drop();
    ::close(descriptor_);
}

void ReadHandle::drop() noexcept {
    std::erase(open_handles(), this);
    file_.reset();
}

bool ReadHandle::dropped() const noexcept {
    return file_ < 0 || hdf5::unsound(file_);
}

hid_t ReadHandle::get() {
    auto& open = open_handles();
    if (!dropped()) {
        if (open.back() != this) open.splice(open.end(), open, std::find(open.begin(), open.end(), this));
        return file_;
    }
    if (file_ >= 0) close_readers(device_, inode_);  // within a process all share what is unsound
    while (open.size() >= kMostOpen) open.front()->drop();
    // The system's name for what is open: the same file whatever happened to its name.
    const std::string open_file = "/proc/self/fd/" + std::to_string(descriptor_);
    const bool there = ::access(open_file.c_str(), R_OK) == 0;
    file_ = hdf5::open_file(there ? open_file : path_.string(), where_);
    if (hdf5::unsound(file_)) {  // a writer of this process has it open, and what it shares cannot be forgotten
        file_.reset();
        throw Error(ErrorCode::io, where_, "expected to read it", "found that a read failed while it is being written");
    }
    open.push_back(this);
    return file_;
}

std::uint64_t ReadHandle::bytes() const {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) throw os_error(errno, path_, "expected to read it");
    return static_cast<std::uint64_t>(status.st_size);
}

void ReadHandle::close_readers(const std::filesystem::path& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return;
    close_readers(status.st_dev, status.st_ino);
}

void ReadHandle::close_readers(dev_t device, ino_t inode) noexcept {
    for (ReadHandle* handle : all_handles())
        if (handle->device_ == device && handle->inode_ == inode) handle->drop();
}

}  // namespace headscope::store

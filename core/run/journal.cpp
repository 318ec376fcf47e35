// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/base/io/output_file.h"
#include "core/base/process/os_error.h"
#include "core/base/process/threads.h"
#include "core/run/journal_reader.h"

namespace headscope::training {
namespace {

constexpr auto kWanted = "expected to write the journal of this run";

/// A lock of the open file, not of the process: it ends with the descriptor and with nothing else.
struct flock whole_file(short type) {
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    return lock;
}

/// No protection on file systems without locks.
void lock(int descriptor, const std::filesystem::path& path) {
    struct flock wish = whole_file(F_WRLCK);
    if (::fcntl(descriptor, F_OFD_SETLK, &wish) == 0) return;
    if (errno == EAGAIN || errno == EACCES) {
        throw Error(ErrorCode::usage, shown(path), "expected a run that no other process is training",
                    "found that one writes its journal");
    }
}

/// End of the last whole event; 0 for a file without a whole header. Throws if it is no journal.
std::uint64_t end_of_events(const std::filesystem::path& path) {
    JournalReader reader(path);
    while (reader.read().more) {
    }
    return reader.position();
}

}  // namespace

double now() {
    const auto time = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration<double>(time).count();
}

JournalWriter::JournalWriter(std::filesystem::path path, std::chrono::milliseconds sync_every)
    : path_(std::move(path)) {
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0666);
    if (descriptor_ < 0 && errno == ELOOP) throw Error(ErrorCode::usage, shown(path_), kWanted, "found a link");
    if (descriptor_ < 0) throw os_error(errno, path_, kWanted);
    try {
        struct stat status {};
        if (::fstat(descriptor_, &status) != 0) throw os_error(errno, path_, kWanted);
        if (!S_ISREG(status.st_mode)) {
            throw Error(ErrorCode::usage, shown(path_), kWanted, "found " + file_kind(status.st_mode));
        }
        lock(descriptor_, path_);
        size_ = end_of_events(path_);
        if (::fstat(descriptor_, &status) != 0) throw os_error(errno, path_, kWanted);
        cut_ = static_cast<std::uint64_t>(status.st_size) - size_;
        if (cut_ > 0 && ::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0) throw os_error(errno, path_, kWanted);
        if (size_ == 0) write(journal_header());
        sync_now();
        sync_folder(path_.has_parent_path() ? path_.parent_path() : std::filesystem::path("."));
        thread_ = start_thread([this, sync_every] { work(sync_every); });
    } catch (...) {
        ::close(descriptor_);
        throw;
    }
}

JournalWriter::~JournalWriter() {
    {
        const std::lock_guard guard(mutex_);
        ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
    [[maybe_unused]] const int ignored = ::fdatasync(descriptor_);
    ::close(descriptor_);
}

void JournalWriter::write(std::string_view bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t count = ::write(descriptor_, bytes.data() + done, bytes.size() - done);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) {
            const int number = count < 0 ? errno : ENOSPC;
            // Readers and the next opening would pass over a torn event; without it they need not.
            [[maybe_unused]] const int ignored = ::ftruncate(descriptor_, static_cast<off_t>(size_));
            throw os_error(number, path_, kWanted);
        }
        done += static_cast<std::size_t>(count);
    }
    size_ += bytes.size();
}

void JournalWriter::append(What what, double time) {
    const std::string bytes = frame(encode(Event{time > 0 ? time : now(), std::move(what)}));
    int failure = 0;
    {
        const std::lock_guard guard(mutex_);
        failure = std::exchange(failure_, 0);
    }
    if (failure != 0) throw os_error(failure, path_, "expected to sync the journal of this run");
    write(bytes);
    const std::lock_guard guard(mutex_);
    dirty_ = true;
}

void JournalWriter::sync_now() {
    if (::fdatasync(descriptor_) != 0) throw os_error(errno, path_, "expected to sync the journal of this run");
}

void JournalWriter::sync() {
    int failure = 0;
    {
        const std::lock_guard guard(mutex_);
        failure = std::exchange(failure_, 0);
        dirty_ = false;
    }
    if (failure != 0) throw os_error(failure, path_, "expected to sync the journal of this run");
    sync_now();
}

void JournalWriter::work(std::chrono::milliseconds sync_every) {
    std::unique_lock guard(mutex_);
    while (!changed_.wait_for(guard, sync_every, [this] { return ending_; })) {
        if (!std::exchange(dirty_, false)) continue;
        guard.unlock();
        const int failure = ::fdatasync(descriptor_) == 0 ? 0 : errno;
        guard.lock();
        if (failure != 0) failure_ = failure;
    }
}

bool being_written(const std::filesystem::path& journal) {
    const int descriptor = ::open(journal.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return false;
    struct flock wish = whole_file(F_RDLCK);
    const bool held = ::fcntl(descriptor, F_OFD_GETLK, &wish) == 0 && wish.l_type != F_UNLCK;
    ::close(descriptor);
    return held;
}

}  // namespace headscope::training

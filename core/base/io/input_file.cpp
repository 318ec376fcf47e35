// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/io/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/io/uncached_reads.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"

namespace headscope {
namespace {

constexpr std::size_t largest_read = std::size_t{16} << 20U;  // a fraction of a second, after which a stop is seen

std::int64_t nanoseconds(const timespec& time) {
    return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

/// "an analysis file", "a text file".
std::string with_article(const std::string& kind) {
    return (kind.find_first_of("aeiou") == 0 ? "an " : "a ") + kind;
}

/// Gives the pages of bytes [begin, end), which have been read, back to the system. The page in which they end stays
/// unless the file ends there: the next read begins in it. The system may hold pages in blocks and drops whole ones
/// only, so a block that began before the range goes with it.
void drop_pages(int descriptor, std::uint64_t begin, std::uint64_t end, std::uint64_t file_end) {
    constexpr std::uint64_t largest_block = std::uint64_t{2} << 20U;
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t first = (begin - std::min(begin, largest_block)) / page * page;
    const std::uint64_t last = end < file_end ? end / page * page : end;
    if (last <= first) return;
    // A hint: file systems that cannot follow it keep the pages.
    ::posix_fadvise(descriptor, static_cast<off_t>(first), static_cast<off_t>(last - first), POSIX_FADV_DONTNEED);
}

}  // namespace

InputFile::InputFile(std::filesystem::path path, std::string kind) : path_(std::move(path)), kind_(std::move(kind)) {
    const std::string wish = "expected " + with_article(kind_) + " that can be read";
    if (path_.native().find('\0') != std::string::npos) {
        throw Error(ErrorCode::io, shown(path_), wish, "found a NUL character in the name");
    }
    // stat first: opening a device can already do something to it. Once more after opening, should it be swapped.
    struct stat status {};
    if (::stat(path_.c_str(), &status) != 0) throw os_error(errno, path_, wish);
    if (S_ISREG(status.st_mode)) {
        do {
            descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        } while (descriptor_ < 0 && errno == EINTR);
        if (descriptor_ < 0) throw os_error(errno, path_, wish);
        if (::fstat(descriptor_, &status) != 0) {
            const int number = errno;
            ::close(descriptor_);
            throw os_error(number, path_, wish);
        }
    }
    if (!S_ISREG(status.st_mode)) {
        if (descriptor_ >= 0) ::close(descriptor_);
        throw Error(ErrorCode::io, shown(path_), "expected " + with_article(kind_),
                    "found " + file_kind(status.st_mode));
    }
    size_ = static_cast<std::uint64_t>(status.st_size);
    stored_ = status.st_blocks > 0 ? static_cast<std::uint64_t>(status.st_blocks) * 512 : size_;
    modified_ = nanoseconds(status.st_mtim);
    changed_ = nanoseconds(status.st_ctim);
}

InputFile::~InputFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      kind_(std::move(other.kind_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      stored_(other.stored_),
      modified_(other.modified_),
      changed_(other.changed_) {}

void InputFile::read(std::uint64_t offset, void* to, std::size_t size) const {
    if (offset > size_ || size > size_ - offset) {
        throw Error(ErrorCode::format, shown(path_),
                    "expected " + std::to_string(size) + " bytes from byte " + std::to_string(offset),
                    "found only " + std::to_string(size_) + " bytes in the file");
    }
    auto* out = static_cast<char*>(to);
    const bool drops = reads_uncached();
    while (size > 0) {
        check_cancellation();
        const ssize_t got = ::pread(descriptor_, out, std::min(size, largest_read), static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw os_error(errno, path_, "expected to read byte " + std::to_string(offset));
        if (got == 0) {
            throw Error(ErrorCode::mismatch, shown(path_),
                        "expected " + std::to_string(size_) + " bytes, as many as when it was opened",
                        "found its end at byte " + std::to_string(offset) + ": it was cut meanwhile");
        }
        if (drops) drop_pages(descriptor_, offset, offset + static_cast<std::uint64_t>(got), size_);
        out += got;
        offset += static_cast<std::uint64_t>(got);
        size -= static_cast<std::size_t>(got);
    }
}

std::string InputFile::read_all(std::uint64_t limit) const {
    if (size_ > limit) {
        throw Error(ErrorCode::limit, shown(path_),
                    "expected " + with_article(kind_) + " of at most " + size_text(limit), "found " + size_text(size_));
    }
    if (size_ == 0) {
        char first = 0;
        if (::pread(descriptor_, &first, 1, 0) != 0) {  // bytes, or an error
            throw Error(ErrorCode::io, shown(path_), "expected " + with_article(kind_) + " of a known size",
                        "found one that the system makes up as it is read, as those of /proc");
        }
    }
    std::string text(static_cast<std::size_t>(size_), '\0');
    read(0, text.data(), text.size());
    check_unchanged();
    return text;
}

void InputFile::check_unchanged() const {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) throw os_error(errno, path_, "expected to read it");
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (size != size_ || nanoseconds(status.st_mtim) != modified_) {
        throw Error(ErrorCode::mismatch, shown(path_), "expected the file as it was when it was opened",
                    size != size_ ? "found " + std::to_string(size) + " bytes instead of " + std::to_string(size_)
                                  : "found that it was written to meanwhile");
    }
}

std::string InputFile::stamp() const {
    return std::to_string(size_) + " " + std::to_string(modified_) + " " + std::to_string(changed_);
}

std::string read_small_file(const std::filesystem::path& path, std::uint64_t limit, const std::string& kind) {
    return InputFile(path, kind).read_all(limit);
}

bool ends_at_regular_file(const std::filesystem::path& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace headscope

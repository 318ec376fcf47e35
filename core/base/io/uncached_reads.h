// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace headscope {

/// While it exists, and if it is `wanted`, InputFile::read on this thread gives the pages of a file that it has read
/// back to the system. For files that are read again and again and do not fit into memory: the system's cache never
/// holds the part that comes next, and everything else of the machine leaves the cache for it. The innermost scope
/// counts. Created and destroyed on the thread that reads.
class UncachedReads {
public:
    explicit UncachedReads(bool wanted);
    ~UncachedReads();
    UncachedReads(const UncachedReads&) = delete;
    UncachedReads& operator=(const UncachedReads&) = delete;

private:
    bool outer_;
};

/// True where the innermost scope of this thread is wanted; false without a scope.
bool reads_uncached() noexcept;

}  // namespace headscope

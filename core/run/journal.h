// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

#include "core/run/events.h"

namespace headscope::training {

// The journal of a run, `events.log`: what run.h5, the window and a resume go by. A header of 16 bytes (the magic
// "HSEVENTS", version 1 as u32, CRC-32C of these 12), then frames, little-endian:
//
//     u32 marker 0xFF4E5648   u16 type   u16 zero   u32 length   u32 CRC-32C of type, zero, length and payload payload
//
// The payload is that of encode() (events.h). A frame that is cut short or changed is found by its checksum; what
// follows it is found by the marker, so that a damaged stretch costs only the events in it.

inline constexpr const char* kJournalName = "events.log";
inline constexpr std::size_t kJournalHeaderBytes = 16, kFrameHeaderBytes = 16;
inline constexpr std::uint32_t kFrameMarker = 0xFF4E5648U;

/// Appends to a journal. Each event is one write to the operating system, so a process that dies loses nothing that
/// was appended; a machine that dies loses at most what came in the `sync_every` before, unless sync() was called.
/// Syncing is done by a thread of the writer's own, so that append() never waits for the disk.
///
/// The file is created, with its folder's entry synced, where it is absent. An existing one is checked to its end, and
/// what follows its last whole event (a torn write) is cut off. A link is not followed, for nothing of another file
/// may be cut. While the writer lives it holds a lock: another writer
/// is refused. Errors: Error io (no space, ...), mismatch for a file that is no journal or of a newer version, usage
/// for one that another process writes. After a failed write the file is cut back to its last whole event, and append()
/// may be tried again. An error of the syncing thread is thrown by the next append() or sync(). Threads: any, one at a
/// time.
class JournalWriter {
public:
    explicit JournalWriter(std::filesystem::path path,
                           std::chrono::milliseconds sync_every = std::chrono::milliseconds(2000));
    /// Syncs; drops a failure of that.
    ~JournalWriter();
    JournalWriter(const JournalWriter&) = delete;
    JournalWriter& operator=(const JournalWriter&) = delete;

    const std::filesystem::path& path() const noexcept { return path_; }
    /// `time` 0: now.
    void append(What what, double time = 0);
    /// Returns when everything that was appended is on the disk: before a snapshot is published, and at the end.
    void sync();
    /// Bytes of a torn write that were cut off on opening.
    std::uint64_t cut() const noexcept { return cut_; }

private:
    void write(std::string_view bytes);
    void sync_now();
    void work(std::chrono::milliseconds sync_every);

    std::filesystem::path path_;
    int descriptor_ = -1;
    std::uint64_t size_ = 0;
    std::uint64_t cut_ = 0;
    std::mutex mutex_;  ///< of what follows
    std::condition_variable changed_;
    bool dirty_ = false;
    bool ending_ = false;
    int failure_ = 0;  ///< errno of a sync that failed
    std::thread thread_;
};

/// True while a JournalWriter of any process on this machine (where the file system passes locks on: on any) has the
/// journal open. False where there is none. Never blocks.
bool being_written(const std::filesystem::path& journal);

/// Seconds since 1970 by the machine's clock.
double now();

}  // namespace headscope::training

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/run/events.h"

namespace headscope::training {

/// Bytes kept of one text: of samples (a job may write 65 536 tokens), and of log lines and requests. The reader counts
/// what it leaves out.
inline constexpr std::size_t kLongestSample = std::size_t{1} << 20U, kLongestLine = std::size_t{1} << 14U;

/// Header at the start of some bytes of a journal.
struct Frame {
    enum class Kind {
        whole,    ///< type and payload
        partial,  ///< may become one when more bytes come
        damaged,  ///< cannot be or become a frame
    };
    Kind kind = Kind::damaged;
    std::uint16_t type = 0;
    std::string_view payload;
    std::size_t bytes = 0;  ///< of the whole frame
};
Frame read_frame(std::string_view bytes);
/// The bytes that encode a frame.
std::string frame(const EncodedEvent& event);
/// Those of an empty journal.
std::string journal_header();

/// Reads a journal, also while another process appends to it: read() returns new events. Reads by position and never
/// maps, locks or waits, so the writer is not disturbed.
///
/// Never fails on content: damaged stretches and events of a newer program are skipped and counted. If the file was
/// replaced or shrank, reading starts over and sets a flag in the batch. Errors: Error io; mismatch for a file that is
/// no journal or of a newer version (a truncated header is an empty journal); Stopped within a CancellationScope. After
/// an error the next read() starts where this one did, so no event is lost. Memory: a window of 1 MiB or one event,
/// and the batch. Threads: one at a time.
class JournalReader {
public:
    static constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
    /// `only_last`: read events in the last `only_last` bytes only. An event cut there counts as damage.
    explicit JournalReader(std::filesystem::path path, std::uint64_t only_last = kAll);
    ~JournalReader();
    JournalReader(const JournalReader&) = delete;
    JournalReader& operator=(const JournalReader&) = delete;

    struct Batch {
        std::vector<Event> events;
        bool restarted = false;  ///< forget what was read before: these are the events from the begin
        bool more = false;       ///< the end was not reached; read on
    };
    /// The next events, of about `most_bytes` of the file. A file that does not exist (yet) has none.
    Batch read(std::uint64_t most_bytes = 16U << 20U);

    const std::filesystem::path& path() const noexcept { return path_; }
    std::uint64_t damaged_bytes() const noexcept { return damaged_; }
    std::uint64_t unknown_events() const noexcept { return unknown_; }
    /// Byte behind the last whole event.
    std::uint64_t position() const noexcept { return position_; }

private:
    bool open();
    void close() noexcept;
    void read_into(Batch& batch, std::uint64_t most_bytes);
    bool check_header(std::uint64_t end);
    bool next(std::uint64_t end, Batch& batch);
    bool skip_damage(std::uint64_t end);
    std::string_view view(std::uint64_t offset, std::size_t wanted, std::uint64_t end);
    void take(const Frame& frame, Batch& batch);

    std::filesystem::path path_;
    std::uint64_t only_last_;
    int descriptor_ = -1;
    std::uint64_t device_ = 0, inode_ = 0;
    std::uint64_t position_ = 0;
    std::string window_;  ///< bytes of the file from window_begin_ on
    std::uint64_t window_begin_ = 0;
    std::uint64_t searched_ = 0;  ///< no frame begins between position_ and here
    std::uint64_t wasted_ = 0;    ///< bytes whose checksum was wrong: a file made to keep us busy has an end
    std::uint64_t damaged_ = 0, unknown_ = 0;
    bool restarted_ = false;  ///< and no batch has said so yet
};

/// All events of a journal as it is now.
std::vector<Event> read_journal(const std::filesystem::path& path);

}  // namespace headscope::training

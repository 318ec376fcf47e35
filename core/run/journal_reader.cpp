// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/journal_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <tuple>
#include <utility>

#include "core/base/io/crc32c.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/run/journal.h"

namespace headscope::training {
namespace {

constexpr std::uint32_t kVersion = 1;
constexpr std::string_view kMagic = "HSEVENTS";
constexpr std::size_t kWindow = 1U << 20U;
constexpr std::uint64_t kMostWasted = std::uint64_t{1} << 30U;
constexpr auto kWanted = "expected the journal of a run";

template <class Number>
Number number_at(std::string_view bytes, std::size_t at) {
    Number value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

template <class Number>
void append_number(std::string& bytes, Number value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string_view marker_bytes() {
    static const auto bytes = [] {
        std::array<char, sizeof kFrameMarker> marker{};
        std::memcpy(marker.data(), &kFrameMarker, marker.size());
        return marker;
    }();
    return {bytes.data(), bytes.size()};
}

/// A journal may come from anywhere, and people read these texts. Those of the trainer are far shorter.
void shorten_texts(What& what) {
    const auto cut = [](std::string& text, std::size_t most) {
        if (text.size() > most) text = shortened(text, most);
    };
    if (auto* sample = std::get_if<SampleText>(&what)) {
        cut(sample->prompt, kLongestSample);
        cut(sample->text, kLongestSample);
    } else if (auto* log = std::get_if<Log>(&what)) {
        cut(log->text, kLongestLine);
    } else if (auto* control = std::get_if<Control>(&what)) {
        for (std::string* text : {&control->action, &control->value, &control->outcome}) cut(*text, kLongestLine);
    } else if (auto* state = std::get_if<StateChanged>(&what)) {
        cut(state->text, kLongestLine);
    } else if (auto* rewound = std::get_if<Rewound>(&what)) {
        cut(rewound->reason, kLongestLine);
    }
}

std::uint32_t frame_checksum(std::string_view header, std::string_view payload) {
    return crc32c(payload, crc32c(header.substr(4, 8)));
}

}  // namespace

std::string journal_header() {
    std::string bytes(kMagic);
    append_number(bytes, kVersion);
    append_number(bytes, crc32c(bytes));
    return bytes;
}

std::string frame(const EncodedEvent& event) {
    std::string bytes;
    bytes.reserve(kFrameHeaderBytes + event.payload.size());
    append_number(bytes, kFrameMarker);
    append_number(bytes, event.type);
    append_number(bytes, std::uint16_t{0});
    append_number(bytes, static_cast<std::uint32_t>(event.payload.size()));
    append_number(bytes, frame_checksum(bytes, event.payload));
    return bytes += event.payload;
}

Frame read_frame(std::string_view bytes) {
    Frame frame;
    const std::string_view marker = marker_bytes();
    const std::size_t seen = std::min(bytes.size(), marker.size());
    if (bytes.substr(0, seen) != marker.substr(0, seen)) return frame;
    if (bytes.size() < kFrameHeaderBytes) {
        frame.kind = Frame::Kind::partial;
        frame.bytes = kFrameHeaderBytes;
        return frame;
    }
    frame.type = number_at<std::uint16_t>(bytes, 4);
    const auto length = number_at<std::uint32_t>(bytes, 8);
    if (frame.type == 0 || number_at<std::uint16_t>(bytes, 6) != 0 || length > kLargestPayload) return frame;
    frame.bytes = kFrameHeaderBytes + length;
    if (bytes.size() < frame.bytes) {
        frame.kind = Frame::Kind::partial;
        return frame;
    }
    frame.payload = bytes.substr(kFrameHeaderBytes, length);
    if (number_at<std::uint32_t>(bytes, 12) == frame_checksum(bytes, frame.payload)) frame.kind = Frame::Kind::whole;
    return frame;
}

JournalReader::JournalReader(std::filesystem::path path, std::uint64_t only_last)
    : path_(std::move(path)), only_last_(only_last) {}

JournalReader::~JournalReader() {
    close();
}

void JournalReader::close() noexcept {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

/// False without a file. Starts over if the file's identity changed.
bool JournalReader::open() {
    struct stat status {};
    if (::stat(path_.c_str(), &status) != 0) {
        if (errno != ENOENT && errno != ENOTDIR) throw os_error(errno, path_, kWanted);
        return false;
    }
    if (!S_ISREG(status.st_mode)) {
        throw Error(ErrorCode::mismatch, shown(path_), kWanted, "found " + file_kind(status.st_mode));
    }
    const bool same = descriptor_ >= 0 && status.st_dev == device_ && status.st_ino == inode_;
    if (same && static_cast<std::uint64_t>(status.st_size) >= position_) return true;
    if (position_ > 0) restarted_ = true;
    if (!same) {
        close();
        descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (descriptor_ < 0 && errno == ENOENT) return false;
        if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) throw os_error(errno, path_, kWanted);
        device_ = status.st_dev;
        inode_ = status.st_ino;
    }
    position_ = searched_ = wasted_ = damaged_ = unknown_ = 0;
    return true;
}

/// Bytes from `offset` on: at least `wanted`, or as many as there are before `end`.
std::string_view JournalReader::view(std::uint64_t offset, std::size_t wanted, std::uint64_t end) {
    const std::uint64_t left = end > offset ? end - offset : 0;
    const std::uint64_t needed = std::min<std::uint64_t>(wanted, left);
    if (offset < window_begin_ || offset + needed > window_begin_ + window_.size()) {
        check_cancellation();
        window_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(std::max(wanted, kWindow), left)));
        window_begin_ = offset;
        std::size_t got = 0;
        while (got < window_.size()) {
            const ssize_t count =
                ::pread(descriptor_, window_.data() + got, window_.size() - got, static_cast<off_t>(offset + got));
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) throw os_error(errno, path_, "expected to read the journal");
            if (count == 0) break;  // it was cut meanwhile
            got += static_cast<std::size_t>(count);
        }
        window_.resize(got);
    }
    return std::string_view(window_).substr(static_cast<std::size_t>(offset - window_begin_));
}

/// False while the file is too short to have one.
bool JournalReader::check_header(std::uint64_t end) {
    const std::string wanted = journal_header();
    const std::string_view found = view(0, kJournalHeaderBytes, end).substr(0, kJournalHeaderBytes);
    if (found == wanted.substr(0, found.size())) {
        if (found.size() < kJournalHeaderBytes) return false;
        position_ = kJournalHeaderBytes;
        return true;
    }
    if (found.size() == kJournalHeaderBytes && found.starts_with(kMagic) &&
        number_at<std::uint32_t>(found, 12) == crc32c(found.substr(0, 12))) {
        throw Error(ErrorCode::unsupported, shown(path_), "expected a journal of version " + std::to_string(kVersion),
                    "found version " + std::to_string(number_at<std::uint32_t>(found, 8)));
    }
    throw Error(ErrorCode::mismatch, shown(path_), kWanted, "found other bytes at its begin");
}

void JournalReader::take(const Frame& frame, Batch& batch) {
    Event event;
    switch (decode(frame.type, frame.payload, event)) {
        case Decoding::event:
            shorten_texts(event.what);
            batch.events.push_back(std::move(event));
            break;
        case Decoding::unknown_type:
            ++unknown_;
            break;
        case Decoding::malformed:
            damaged_ += frame.bytes;
            break;
    }
    position_ += frame.bytes;
}

/// Moves to the next whole frame behind what is none. False where there is none: what is there may be a write that is
/// still going on, or was cut short.
bool JournalReader::skip_damage(std::uint64_t end) {
    std::uint64_t at = std::max(searched_, position_ + 1);
    bool settled = true;  // every place up to `at` is known to begin no frame, whatever comes
    while (at < end && wasted_ < kMostWasted) {
        const std::string_view bytes = view(at, kWindow, end);
        if (bytes.size() < marker_bytes().size()) break;
        const std::size_t found = bytes.find(marker_bytes());
        if (found == std::string_view::npos) {
            at += bytes.size() - (marker_bytes().size() - 1);
            if (settled) searched_ = at;
            continue;
        }
        at += found;
        if (settled) searched_ = at;
        Frame frame = read_frame(view(at, kFrameHeaderBytes, end));
        if (frame.kind == Frame::Kind::partial && at + frame.bytes <= end) {
            frame = read_frame(view(at, frame.bytes, end));
        }
        if (frame.kind == Frame::Kind::whole) {
            damaged_ += at - position_;
            position_ = at;
            return true;
        }
        settled &= frame.kind == Frame::Kind::damaged;
        wasted_ += frame.bytes;
        ++at;
    }
    return false;
}

bool JournalReader::next(std::uint64_t end, Batch& batch) {
    Frame frame = read_frame(view(position_, kFrameHeaderBytes, end));
    if (frame.kind == Frame::Kind::partial && position_ + frame.bytes <= end) {
        frame = read_frame(view(position_, frame.bytes, end));
    }
    if (frame.kind != Frame::Kind::whole) return skip_damage(end);
    take(frame, batch);
    return true;
}

JournalReader::Batch JournalReader::read(std::uint64_t most_bytes) {
    Batch batch;
    if (!open()) return batch;
    const auto before = std::tuple(position_, searched_, wasted_, damaged_, unknown_);
    try {
        read_into(batch, most_bytes);
    } catch (...) {  // the batch is gone, so its events are to be read again
        std::tie(position_, searched_, wasted_, damaged_, unknown_) = before;
        throw;
    }
    batch.restarted = std::exchange(restarted_, false);
    return batch;
}

void JournalReader::read_into(Batch& batch, std::uint64_t most_bytes) {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) throw os_error(errno, path_, kWanted);
    const auto end = static_cast<std::uint64_t>(status.st_size);
    // A torn end that was read may have been cut off and rewritten.
    window_.clear();
    if (position_ == 0) {
        if (!check_header(end)) return;
        if (end > position_ && end - position_ > only_last_) position_ = end - only_last_;
    }
    const std::uint64_t begin = position_;
    while (position_ < end && position_ - begin < most_bytes) {
        if (!next(end, batch)) return;
    }
    batch.more = position_ < end;
}

std::vector<Event> read_journal(const std::filesystem::path& path) {
    JournalReader reader(path);
    std::vector<Event> events;
    for (bool more = true; more;) {
        JournalReader::Batch batch = reader.read();
        if (batch.restarted) events.clear();
        events.insert(events.end(), std::make_move_iterator(batch.events.begin()),
                      std::make_move_iterator(batch.events.end()));
        more = batch.more;
    }
    return events;
}

}  // namespace headscope::training

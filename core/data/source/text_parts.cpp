// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/source/text_parts.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/data/source/source_bytes.h"

namespace headscope::data {
namespace {

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_letter_or_digit(char c) {
    return is_letter(c) || (c >= '0' && c <= '9');
}
bool is_continuation(char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

void read_text(const InputFile& file, PartSink& sink, const std::function<void(std::uint64_t)>& progress) {
    std::uint64_t skipped = 0;  // a byte order mark
    bool begun = false;
    const auto refuse = [&](std::uint64_t byte) {
        throw Error(ErrorCode::format, shown(file.path()), "expected text in UTF-8",
                    "found no UTF-8 at byte " + std::to_string(skipped + byte));
    };
    PartCutter cutter(sink);
    sink.begin_document();
    read_source(
        file,
        [&](std::string_view bytes, std::uint64_t at) {
            if (!begun) skipped = at;
            begun = true;
            cutter.add(bytes, refuse);
            return true;
        },
        progress);
    cutter.finish(refuse);
    sink.end_document();
}

}  // namespace

std::size_t cut_place(std::string_view text, std::size_t least) {
    const std::size_t last = text.size() - 1;  // what follows a cut is looked at
    for (std::size_t i = last; i-- > least + 1;) {
        if (text[i] == ' ' && is_letter_or_digit(text[i - 1]) && is_letter(text[i + 1])) return i;
    }
    for (std::size_t i = last; i-- > least + 1;) {
        if ((text[i] == ' ' || text[i] == '\n') && text[i - 1] != ' ' && text[i - 1] != '\n' && text[i - 1] != '\r')
            return i;
    }
    std::size_t end = text.size() - 1;
    // At most three bytes continue a character; other bytes are no UTF-8, which is found elsewhere.
    for (int i = 0; i < 3 && end > least + 1 && is_continuation(text[end]); ++i) --end;
    return end;
}

void PartCutter::add(std::string_view bytes, const std::function<void(std::uint64_t)>& refuse) {
    while (!bytes.empty()) {
        const std::size_t room = largest_part - waiting_.size();
        waiting_ += bytes.substr(0, room);
        bytes.remove_prefix(std::min(room, bytes.size()));
        if (waiting_.size() == largest_part && !bytes.empty()) hand_on(cut_place(waiting_, largest_part / 2), refuse);
    }
}

void PartCutter::finish(const std::function<void(std::uint64_t)>& refuse) {
    if (!waiting_.empty()) hand_on(waiting_.size(), refuse);
}

void PartCutter::hand_on(std::size_t size, const std::function<void(std::uint64_t)>& refuse) {
    check_cancellation();
    const std::string_view part = std::string_view(waiting_).substr(0, size);
    if (const std::size_t bad = find_invalid_utf8(part); bad != std::string_view::npos) refuse(handed_on_ + bad);
    sink_.part(part);
    handed_on_ += size;
    waiting_.erase(0, size);
}

void read_parts(const InputFile& file, SourceKind kind, PartSink& sink,
                const std::function<void(std::uint64_t)>& progress, const std::string& column) {
    switch (kind) {
        case SourceKind::text:
            read_text(file, sink, progress);
            break;
        case SourceKind::json_lines:
        case SourceKind::json_array:
        case SourceKind::parquet:
            read_json_texts(file, kind, sink, progress, column);
            break;
        case SourceKind::bible:
            read_bible(file, sink);
            break;
    }
    file.check_unchanged();
    progress(file.size());
}

}  // namespace headscope::data

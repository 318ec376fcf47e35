// SPDX-License-Identifier: GPL-3.0-or-later
// The King James Bible of Debian's package bible-kjv-text, /usr/lib/bible.data. Nothing but the file itself was looked
// at to read it. Numbers are 32 bits wide, the highest byte first:
//
//     0     "EC02", then a title, padded with NUL to byte 84
//     84    bytes of a window of the text: 65536
//     88    number of windows n
//     92    n + 1 places in the file: where each window's compressed bytes begin, and where the last ones end
//     ...   the three first bytes of a .Z file (compress), left out of every window
//
// The text is a title line, then a verse a line: "Ge1:1 In the beginning ...".

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/data/source/lzw.h"
#include "core/data/source/text_parts.h"

namespace headscope::data {
namespace {

constexpr std::uint64_t largest_file = 64U << 20U;
constexpr std::int64_t verses_of_the_bible = 31102;

constexpr std::array<std::string_view, 66> book_names{"Genesis",
                                                      "Exodus",
                                                      "Leviticus",
                                                      "Numbers",
                                                      "Deuteronomy",
                                                      "Joshua",
                                                      "Judges",
                                                      "Ruth",
                                                      "1 Samuel",
                                                      "2 Samuel",
                                                      "1 Kings",
                                                      "2 Kings",
                                                      "1 Chronicles",
                                                      "2 Chronicles",
                                                      "Ezra",
                                                      "Nehemiah",
                                                      "Esther",
                                                      "Job",
                                                      "Psalms",
                                                      "Proverbs",
                                                      "Ecclesiastes",
                                                      "Song of Solomon",
                                                      "Isaiah",
                                                      "Jeremiah",
                                                      "Lamentations",
                                                      "Ezekiel",
                                                      "Daniel",
                                                      "Hosea",
                                                      "Joel",
                                                      "Amos",
                                                      "Obadiah",
                                                      "Jonah",
                                                      "Micah",
                                                      "Nahum",
                                                      "Habakkuk",
                                                      "Zephaniah",
                                                      "Haggai",
                                                      "Zechariah",
                                                      "Malachi",
                                                      "Matthew",
                                                      "Mark",
                                                      "Luke",
                                                      "John",
                                                      "Acts",
                                                      "Romans",
                                                      "1 Corinthians",
                                                      "2 Corinthians",
                                                      "Galatians",
                                                      "Ephesians",
                                                      "Philippians",
                                                      "Colossians",
                                                      "1 Thessalonians",
                                                      "2 Thessalonians",
                                                      "1 Timothy",
                                                      "2 Timothy",
                                                      "Titus",
                                                      "Philemon",
                                                      "Hebrews",
                                                      "James",
                                                      "1 Peter",
                                                      "2 Peter",
                                                      "1 John",
                                                      "2 John",
                                                      "3 John",
                                                      "Jude",
                                                      "Revelation"};

class DataFile {
public:
    DataFile(std::string bytes, std::string where) : bytes_(std::move(bytes)), where_(std::move(where)) {}

    std::string text() const {
        constexpr std::size_t window_at = 84, count_at = 88, places_at = 92, magic_bytes = 3;
        if (!bytes_.starts_with("EC02") || bytes_.size() < places_at) refuse("another beginning");
        const std::uint32_t window = number(window_at);
        const std::uint32_t count = number(count_at);
        if (window == 0 || window > (1U << 20U) || count == 0 || count > (bytes_.size() - places_at) / 4) {
            refuse(std::to_string(count) + " windows of " + std::to_string(window) + " bytes");
        }
        const std::size_t first = number(places_at);
        if (first < places_at + 4 * (std::size_t{count} + 1) + magic_bytes || first > bytes_.size()) {
            refuse("a first window at byte " + std::to_string(first));
        }
        const auto most_bits = static_cast<unsigned char>(bytes_[first - 1]) & 0x1FU;
        if (std::string_view(bytes_).substr(first - magic_bytes, 2) != "\x1F\x9D" || most_bits < 9 || most_bits > 16) {
            refuse("another compression");
        }
        std::string text;
        for (std::uint32_t i = 0; i < count; ++i) {
            check_cancellation();
            const std::size_t begin = number(places_at + 4 * std::size_t{i});
            const std::size_t end = number(places_at + 4 * (std::size_t{i} + 1));
            if (begin > end || end > bytes_.size()) refuse("window " + std::to_string(i) + " outside of it");
            text += decompress_lzw(std::string_view(bytes_).substr(begin, end - begin), most_bits, window, where_);
        }
        return text;
    }

    [[noreturn]] void refuse(const std::string& found) const {
        throw Error(ErrorCode::format, where_, "expected the text of Debian's package bible-kjv-text",
                    "found " + found);
    }

private:
    std::uint32_t number(std::size_t at) const {
        std::uint32_t value = 0;
        for (std::size_t i = 0; i < 4; ++i) value = value << 8U | static_cast<unsigned char>(bytes_[at + i]);
        return value;
    }

    std::string bytes_;
    std::string where_;
};

struct Verse {
    std::string_view book;
    std::string_view chapter;
    std::string_view text;
};

/// "1Sm2:3 And ..." -> 1Sm, 2, And ...
bool split_verse(std::string_view line, Verse& verse) {
    constexpr std::string_view digits = "0123456789";
    const std::size_t colon = line.find(':');
    const std::size_t space = line.find(' ');
    if (colon == std::string_view::npos || space == std::string_view::npos || colon > space) return false;
    const std::size_t before_chapter = line.substr(0, colon).find_last_not_of(digits);
    if (before_chapter == std::string_view::npos || before_chapter + 1 == colon) return false;
    if (line.substr(colon + 1, space - colon - 1).find_first_not_of(digits) != std::string_view::npos) return false;
    verse = {line.substr(0, before_chapter + 1), line.substr(before_chapter + 1, colon - before_chapter - 1),
             line.substr(space + 1)};
    return true;
}

}  // namespace

void read_bible(const InputFile& file, PartSink& sink) {
    const DataFile data(file.read_all(largest_file), shown(file.path()));
    const std::string text = data.text();
    // Checked before anything is handed on: all or nothing.
    std::vector<std::string> books;
    std::int64_t verses = 0;
    Verse before;
    std::string_view rest = text;
    rest.remove_prefix(
        std::min(rest.size(), rest.find('\n') == std::string_view::npos ? rest.size() : rest.find('\n') + 1));
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        Verse verse;
        if (!split_verse(rest.substr(0, end), verse)) {
            data.refuse("a line that is no verse: \"" + escaped(rest.substr(0, end), 40) + '"');
        }
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (verse.book != before.book) {
            if (books.size() == book_names.size()) data.refuse("more than 66 books");
            books.emplace_back(book_names[books.size()]).append("\n");
        }
        if (verse.book != before.book || verse.chapter != before.chapter) books.back() += "\n";
        books.back().append(verse.text).append("\n");
        before = verse;
        ++verses;
    }
    if (books.size() != book_names.size() || verses != verses_of_the_bible) {
        data.refuse(count_text(static_cast<std::uint64_t>(verses)) + " verses in " + std::to_string(books.size()) +
                    " books, not 31 102 in 66");
    }
    const auto refuse = [&](std::uint64_t) { data.refuse("text that is no UTF-8"); };
    for (const std::string& book : books) {
        sink.begin_document();
        PartCutter cutter(sink);
        cutter.add(book, refuse);
        cutter.finish(refuse);
        sink.end_document();
    }
}

}  // namespace headscope::data

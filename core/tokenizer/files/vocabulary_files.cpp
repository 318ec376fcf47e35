// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/files/vocabulary_files.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/json/json.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/text/text.h"
#include "core/tokenizer/unicode/unicode.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

namespace {

// The largest known are of 5 MB (500 000 pieces, 250 000 merges). A file of tiny pieces takes 50 times its size while
// it is read.
constexpr std::uint64_t largest_json = 8'000'000;
constexpr std::uint64_t largest_list = 6'000'000;
constexpr std::uint64_t largest_lines = 8'000'000;

std::string place(const std::filesystem::path& path, std::size_t line) {
    return escaped(path.string()) + ": line " + std::to_string(line + 1);
}

std::string read_text(const std::filesystem::path& path, std::uint64_t limit, const std::string& kind) {
    std::string text = read_small_file(path, limit, kind);
    if (const std::size_t bad = find_invalid_utf8(text); bad != std::string::npos) {
        throw Error(ErrorCode::format, escaped(path.string()), "expected UTF-8",
                    "found \"" + escaped(std::string_view(text).substr(bad, 1)) + "\" at byte " + std::to_string(bad));
    }
    return text;
}

// Calls take(number, line) for every line; one that nothing follows is a line only if it holds something.
template <class Take>
void each_line(std::string_view text, const Take& take) {
    std::size_t number = 0;
    for (std::size_t at = 0; at < text.size(); ++number) {
        if (number % 4096 == 0) check_cancellation();
        const std::size_t end = std::min(text.find('\n', at), text.size());
        std::string_view line = text.substr(at, end - at);
        if (line.ends_with('\r')) line.remove_suffix(1);
        take(number, line);
        at = end + 1;
    }
}

}  // namespace

nlohmann::json read_vocabulary_json(const std::filesystem::path& path) {
    nlohmann::json pieces = read_json_file(path, largest_json, "vocabulary");
    JsonView(pieces, escaped(path.string())).object();
    return pieces;
}

nlohmann::json read_merges(const std::filesystem::path& path, const nlohmann::json& vocabulary) {
    const std::string text = read_text(path, largest_list, "list of merges");
    nlohmann::json merges = nlohmann::json::array();
    each_line(text, [&](std::size_t number, std::string_view line) {
        if (line.starts_with("#version")) return;
        const std::size_t space = line.find(' ');
        if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
            throw Error(ErrorCode::format, place(path, number), "expected two pieces with one space between them",
                        "found \"" + escaped(line, 60) + "\"");
        }
        const std::string left(line.substr(0, space));
        const std::string right(line.substr(space + 1));
        for (const std::string& piece : {left, right, left + right}) {
            if (vocabulary.contains(piece)) continue;
            throw Error(ErrorCode::mismatch, place(path, number), "expected pieces of the vocabulary",
                        "found \"" + escaped(piece, 60) + "\", which it lacks");
        }
        merges.push_back(std::string(line));
    });
    return merges;
}

nlohmann::json read_vocabulary_lines(const std::filesystem::path& path) {
    const std::string text = read_text(path, largest_lines, "vocabulary");
    nlohmann::json pieces = nlohmann::json::object();
    each_line(text, [&](std::size_t number, std::string_view line) {
        while (!line.empty()) {
            const std::size_t last = previous_utf8(line, line.size());
            if (!is_space(decode_utf8(line, last).point)) break;
            line = line.substr(0, last);
        }
        pieces[std::string(line)] = number;
    });
    if (pieces.empty()) {
        throw Error(ErrorCode::format, escaped(path.string()), "expected a piece a line", "found none");
    }
    return pieces;
}

}  // namespace headscope::tokenizer

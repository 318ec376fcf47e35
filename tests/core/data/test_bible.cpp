// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include "core/data/catalog.h"
#include "core/data/source/lzw.h"
#include "core/data/text_data.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/data/corpus.h"

using namespace headscope;
using namespace headscope::test;

namespace {

std::string big_endian(std::uint32_t number) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(number >> shift & 0xFFU));
    return bytes;
}

/// Codes of nine bits, lowest bit first: text without any compression.
std::string as_codes(const std::string& text) {
    std::string bytes;
    unsigned waiting = 0, bits = 0;
    for (const char c : text) {
        waiting |= static_cast<unsigned>(static_cast<unsigned char>(c)) << bits;
        for (bits += 9; bits >= 8; bits -= 8, waiting >>= 8U) bytes.push_back(static_cast<char>(waiting & 0xFFU));
    }
    if (bits > 0) bytes.push_back(static_cast<char>(waiting));
    return bytes;
}

/// A data file of one window.
std::string data_file(const std::string& compressed) {
    std::string head = "EC02Compressed Data File";
    head.resize(84, '\0');
    const std::uint32_t first = 84 + 8 + 8 + 3;
    return head + big_endian(65536) + big_endian(1) + big_endian(first) +
           big_endian(first + static_cast<std::uint32_t>(compressed.size())) + "\x1F\x9D\x90" + compressed;
}

}  // namespace

TEST_CASE("the King James Bible of Debian's package is 31 102 verses in 66 books", "[data]") {
    const std::string path = data::find_dataset("kjv").files.at(0);
    if (!std::filesystem::exists(path)) {
        WARN("bible-kjv-text is not installed");
        return;
    }
    const Collector bible = collected(path, data::SourceKind::bible);
    REQUIRE(bible.documents.size() == 66);
    CHECK(
        bible.documents[0].starts_with("Genesis\n\nIn the beginning God created the heaven and the earth.\nAnd the "));
    CHECK(bible.documents[7].find("Now it came to pass in the days when the judges ruled") != std::string::npos);
    CHECK(bible.documents[18].starts_with("Psalms\n\nBlessed is the man"));
    CHECK(bible.documents[65].ends_with("The grace of our Lord Jesus Christ be with you all. Amen.\n"));
    std::size_t lines = 0, blank = 0, bytes = 0;
    for (const std::string& book : bible.documents) {
        bytes += book.size();
        for (std::size_t i = 0; i < book.size(); ++i) {
            lines += book[i] == '\n' ? 1 : 0;
            blank += book[i] == '\n' && book[i - 1] == '\n' ? 1 : 0;
        }
    }
    CHECK(blank == 1189);  // one a chapter
    CHECK(lines == 31102 + 66 + 1189);
    CHECK(bytes > 4'000'000);
}

TEST_CASE("LZW undoes codes that grow, a code of the word just being made, and a clear", "[data]") {
    // "aaaaaa" as codes 97, 257 (not yet known: aa), 258 (aaa); then clear and "b", in the second group of eight codes.
    const auto codes = [](std::initializer_list<unsigned> list) {
        std::string bytes;
        std::uint64_t waiting = 0;
        unsigned bits = 0;
        for (const unsigned code : list) {
            waiting |= static_cast<std::uint64_t>(code) << bits;
            for (bits += 9; bits >= 8; bits -= 8, waiting >>= 8U) bytes.push_back(static_cast<char>(waiting & 0xFFU));
        }
        if (bits > 0) bytes.push_back(static_cast<char>(waiting));
        return bytes;
    };
    CHECK(data::decompress_lzw(codes({97, 257, 258}), 16, 100, "x") == "aaaaaa");
    CHECK(data::decompress_lzw(codes({97, 256, 0, 0, 0, 0, 0, 0, 98}), 16, 100, "x") == "ab");
    CHECK(data::decompress_lzw("", 16, 100, "x").empty());
    CHECK_THROWS_MATCHES(data::decompress_lzw(codes({97, 300}), 16, 100, "x"), Error, IsError(ErrorCode::format));
    CHECK_THROWS_MATCHES(data::decompress_lzw(codes({257}), 16, 100, "x"), Error, IsError(ErrorCode::format));
    CHECK_THROWS_MATCHES(data::decompress_lzw(codes({97, 257, 258}), 16, 5, "x"), Error, IsError(ErrorCode::limit));
}

TEST_CASE("a data file of the bible that is none, is cut or holds other text is refused in one line", "[data]") {
    TemporaryFolder folder;
    const auto read = [&](const std::string& bytes) {
        return collected(write_file(folder / "bible.data", bytes), data::SourceKind::bible);
    };
    const std::string good = data_file(as_codes("Title\nGe1:1 In the beginning.\n"));
    CHECK_THROWS_MATCHES(read(good), Error, IsError(ErrorCode::format, "1 verses in 1 books, not 31 102 in 66"));
    CHECK_THROWS_MATCHES(read(data_file(as_codes("Title\nno verse\n"))), Error, IsError(ErrorCode::format, "no verse"));
    CHECK_THROWS_MATCHES(read(""), Error, IsError(ErrorCode::format, "bible-kjv-text"));
    for (std::size_t size = 0; size < good.size(); ++size) {
        CHECK_THROWS_MATCHES(read(good.substr(0, size)), Error, IsError(ErrorCode::format));
    }
    for (std::size_t at = 84; at < 103; ++at) {
        std::string bad = good;
        bad[at] = static_cast<char>(0xFF);
        CHECK_THROWS_AS(read(bad), Error);
    }
}

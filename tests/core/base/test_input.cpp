// SPDX-License-Identifier: GPL-3.0-or-later
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/base/io/input_file.h"
#include "core/base/io/sha256.h"
#include "core/base/io/uncached_reads.h"
#include "core/base/json/json.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/text/text.h"
#include "tests/core/base/cached_pages.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
using namespace headscope::test;
namespace fs = std::filesystem;

TEST_CASE("An input file reads exact ranges", "[base][input]") {
    const TemporaryFolder folder;
    const InputFile file(write_file(folder / "a", "0123456789"));
    REQUIRE(file.size() == 10);
    std::string text(4, '?');
    file.read(3, text.data(), text.size());
    REQUIRE(text == "3456");
    file.read(10, text.data(), 0);
    REQUIRE_THROWS_MATCHES(file.read(7, text.data(), 4), Error, IsError(ErrorCode::format, "only 10 bytes"));
    REQUIRE_THROWS_MATCHES(file.read(UINT64_MAX, text.data(), 4), Error, IsError(ErrorCode::format));
    REQUIRE(file.read_all(10) == "0123456789");
    REQUIRE_THROWS_MATCHES(file.read_all(9), Error, IsError(ErrorCode::limit, "at most 9 B"));
}

TEST_CASE("Things that are no regular file are refused at once", "[base][input]") {
    const TemporaryFolder folder;
    REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
    REQUIRE_THROWS_MATCHES(InputFile(folder / "pipe"), Error, IsError(ErrorCode::io, "found a pipe"));
    REQUIRE_THROWS_MATCHES(InputFile(folder.path()), Error, IsError(ErrorCode::io, "found a folder"));
    REQUIRE_THROWS_MATCHES(InputFile("/dev/zero"), Error, IsError(ErrorCode::io, "character device"));
    REQUIRE_THROWS_MATCHES(InputFile(folder / "none"), Error, IsError(ErrorCode::io, "found nothing there"));
    REQUIRE_THROWS_MATCHES(InputFile(folder / "none\n\x1b[31m"), Error, IsError(ErrorCode::io, "\\x0A\\x1B"));
    fs::create_symlink(folder / "pipe", folder / "link");
    REQUIRE_THROWS_MATCHES(InputFile(folder / "link"), Error, IsError(ErrorCode::io, "found a pipe"));
}

TEST_CASE("A file that is cut or written while it is read is an error, not a signal", "[base][input]") {
    const TemporaryFolder folder;
    const InputFile file(write_file(folder / "a", std::string(10000, 'x')));
    std::string buffer(10000, '?');
    SECTION("cut") {
        fs::resize_file(folder / "a", 100);
        REQUIRE_THROWS_MATCHES(file.read(0, buffer.data(), buffer.size()), Error, IsError(ErrorCode::mismatch, "cut"));
    }
    SECTION("grown") {
        fs::resize_file(folder / "a", 20000);
        REQUIRE_THROWS_MATCHES(file.read_all(10000), Error, IsError(ErrorCode::mismatch, "20000 bytes"));
    }
    SECTION("written to") {
        write_file(folder / "a", std::string(10000, 'y'));
        fs::last_write_time(folder / "a", fs::file_time_type::clock::now() + std::chrono::seconds(5));
        REQUIRE_THROWS_MATCHES(file.check_unchanged(), Error, IsError(ErrorCode::mismatch, "written"));
    }
    SECTION("replaced by another") {
        write_file(folder / "b", "short");
        fs::rename(folder / "b", folder / "a");
        REQUIRE(file.read_all(10000) == std::string(10000, 'x'));
    }
}

TEST_CASE("Files that the system makes up as they are read are refused, not taken for empty", "[base][input]") {
    REQUIRE_THROWS_MATCHES(read_small_file("/proc/self/status", 1U << 20U), Error, IsError(ErrorCode::io, "/proc"));
}

TEST_CASE("A file with holes reports its stored size", "[base][input]") {
    const TemporaryFolder folder;
    const InputFile plain(write_file(folder / "a", std::string(100'000, 'x')));
    REQUIRE(plain.stored() >= 100'000);
    write_file(folder / "b", "x");
    fs::resize_file(folder / "b", std::uintmax_t{1} << 40U);
    REQUIRE(InputFile(folder / "b").stored() < (1U << 20U));
}

TEST_CASE("Reading stops where its thread's scope was asked to, and only there", "[base][input]") {
    const TemporaryFolder folder;
    const InputFile file(write_file(folder / "a", "0123456789"));
    std::string json = "[0";
    for (int i = 0; i < 10000; ++i) json += ",0";
    json += "]";
    Cancellation outer, inner;
    REQUIRE_FALSE(cancellation_requested());
    {
        const CancellationScope scope(outer);
        {
            const CancellationScope innermost(inner);
            inner.request();
            REQUIRE_THROWS_AS(file.read_all(10), Stopped);
            REQUIRE_THROWS_AS(parse_json(json, "x"), Stopped);
        }
        REQUIRE(file.read_all(10) == "0123456789");
        outer.request();
        REQUIRE_THROWS_AS(parse_json(json, "x"), Stopped);
        std::thread([&] { REQUIRE_FALSE(cancellation_requested()); }).join();
    }
    REQUIRE(parse_json(json, "x").size() == 10001);
}

TEST_CASE("Uncached reads give the same bytes and keep no pages of the file", "[base][input]") {
    const TemporaryFolder folder;
    std::string bytes(9'000'017, '\0');  // the last page is not full
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>((i * 31 >> 3U) & 0xFFU);
    const fs::path path = write_file(folder / "a", bytes);
    const InputFile file(path);
    const auto is_read_in = [&](std::size_t piece) {
        std::string found(bytes.size(), '?');
        for (std::size_t done = 0; done < found.size(); done += piece)
            file.read(done, found.data() + done, std::min(piece, found.size() - done));
        return found == bytes;
    };
    const bool drops = drop_from_cache(path, bytes.size());
    if (!drops) WARN("the file system of temporary files keeps their pages");
    constexpr std::size_t some = 100, most = 1000;  // pages; the file has 2198 of 4096 bytes
    CHECK_FALSE(reads_uncached());
    const UncachedReads scope(true);
    CHECK(reads_uncached());
    for (const std::size_t piece :
         {std::size_t{8191}, std::size_t{100'003}, std::size_t{4'000'001}, std::size_t{20'000'000}}) {
        CAPTURE(piece);
        CHECK(is_read_in(piece));
        if (drops) CHECK(cached_pages(path, bytes.size()) < some);
    }
    {
        const UncachedReads inner(false);
        CHECK_FALSE(reads_uncached());
        CHECK(is_read_in(1'000'000));
        if (drops) CHECK(cached_pages(path, bytes.size()) > most);
    }
    CHECK(reads_uncached());
    std::thread([] { CHECK_FALSE(reads_uncached()); }).join();

    std::string part(5, '?');
    file.read(bytes.size() - 5, part.data(), 5);
    CHECK(part == bytes.substr(bytes.size() - 5));
    file.read(bytes.size(), part.data(), 0);
    CHECK_THROWS_MATCHES(file.read(bytes.size() - 4, part.data(), 5), Error, IsError(ErrorCode::format, "found only"));
    const InputFile small(write_file(folder / "b", "0123456789"));
    small.read(3, part.data(), 5);
    CHECK(part == "34567");
    const InputFile empty(write_file(folder / "c", ""));
    empty.read(0, part.data(), 0);
}

TEST_CASE("SHA-256 agrees with the standard's examples, in pieces and of files", "[base][sha256]") {
    REQUIRE(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    REQUIRE(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    const std::string million(1'000'000, 'a');
    const std::string expected = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
    Sha256 hash;
    hash.update(million.data(), 63);
    hash.update(million.data(), million.size() - 63);
    REQUIRE(hash.finish() == expected);
    const TemporaryFolder folder;
    const InputFile file(write_file(folder / "a", million));
    Cancellation cancellation;
    REQUIRE(sha256_hex(file, cancellation) == expected);
    cancellation.request();
    REQUIRE_THROWS_AS(sha256_hex(file, cancellation), Stopped);
}

TEST_CASE("Sizes, counts and lists are written for people", "[base][text]") {
    REQUIRE(size_text(999) == "999 B");
    REQUIRE(size_text(1000) == "1.00 kB");
    REQUIRE(size_text(6857216) == "6.86 MB");
    REQUIRE(size_text(999'999) == "1.00 MB");
    REQUIRE(size_text(UINT64_MAX) == "18.4 EB");
    REQUIRE(count_text(0) == "0");
    REQUIRE(count_text(999) == "999");
    REQUIRE(count_text(3428352) == "3 428 352");
    REQUIRE(list_text({"a", "b\n", "c"}, 2) == "\"a\", \"b\\x0A\" and 1 more");
    REQUIRE(joined_text({"a", "b\n", ""}, ", ") == "a, b\n, ");
    REQUIRE(joined_text({}, ", ").empty());
    REQUIRE(contains({"a", "b"}, "b"));
    REQUIRE_FALSE(contains({"ab"}, "a"));
    REQUIRE(separated_parts("a,,b,", ',') == std::vector<std::string>{"a", "", "b"});
    REQUIRE(separated_parts("", ',').empty());
    REQUIRE(utc_text(951'827'696.7) == "2000-02-29T12:34:56Z");
    REQUIRE(utc_text(-5) == "1970-01-01T00:00:00Z");
    REQUIRE(utc_now() > "2025");
    REQUIRE(printf_text("%.1f %%", 12.34) == "12.3 %");
    REQUIRE(prefixed_text(999, 3) == "999");
    REQUIRE(prefixed_text(12345, 3) == "12.3 k");
    REQUIRE(prefixed_text(4.56e15, 3) == "4.56e+03 T");
}

TEST_CASE("A long text is cut between characters, and what is left out is counted", "[base][text]") {
    CHECK(shortened("", 0).empty());
    CHECK(shortened("aé", 3) == "aé");
    CHECK(shortened("aéb", 3) == "aé … 1 byte more");
    CHECK(shortened("aéb", 2) == "a … 3 bytes more");
    CHECK(shortened("é", 1) == " … 2 bytes more");
}

TEST_CASE("Invalid UTF-8 is found at its byte", "[base][text]") {
    REQUIRE(find_invalid_utf8("aé€😀") == std::string_view::npos);
    REQUIRE(find_invalid_utf8("ab\xFF") == 2);
    REQUIRE(find_invalid_utf8("a\xC0\x80") == 1);          // overlong
    REQUIRE(find_invalid_utf8("a\xED\xA0\x80") == 1);      // surrogate
    REQUIRE(find_invalid_utf8("a\xF4\x90\x80\x80") == 1);  // beyond U+10FFFF
    REQUIRE(find_invalid_utf8("a\xE2\x82") == 1);          // cut short
}

TEST_CASE("Text from files is shown without control characters or overrides", "[base][text]") {
    REQUIRE(escaped("a\x1b[2Jé\u202Eb\xFF") == "a\\x1B[2Jé\\u{202E}b\\xFF");
    REQUIRE(escaped(std::string(300, 'x'), 10) == std::string(10, 'x') + "…");
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include "core/base/io/sha256.h"
#include "core/data/token_file.h"
#include "core/data/token_writer.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
using namespace headscope::test;
using data::Split;
using data::TokenFile;
using data::TokenWriter;

namespace {

data::TokenFileInfo info_of(std::int64_t vocabulary) {
    data::TokenFileInfo info;
    info.vocabulary = vocabulary;
    info.separator = vocabulary - 1;
    info.tokenizer = "test";
    info.tokenizer_sha256 = sha256_hex("t");
    info.key = sha256_hex("k");
    info.sources = {{"a.txt", sha256_hex("a"), 3}, {"b/\xC3\xA9.txt", sha256_hex("b"), 4}};
    return info;
}

std::filesystem::path write(const std::filesystem::path& path, std::int64_t vocabulary, double share) {
    TokenWriter writer(path, info_of(vocabulary));
    writer.begin_document(0);
    writer.append(std::vector<std::int32_t>{1, 2, 3});
    writer.append(std::vector<std::int32_t>{4});
    writer.end_document();
    writer.begin_document(0);
    writer.end_document();  // nothing in it
    writer.begin_document(1);
    writer.append(std::vector<std::int32_t>{static_cast<std::int32_t>(vocabulary) - 2, 0});
    writer.end_document();
    writer.hold_out(share);
    writer.publish(Cancellation());
    return path;
}

std::vector<std::int64_t> tokens(const TokenFile& file) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(file.info().tokens));
    file.copy(0, file.info().tokens, all.data());
    return all;
}

}  // namespace

TEST_CASE("a token file gives back its tokens, documents, sources and split", "[data]") {
    TemporaryFolder folder;
    for (const std::int64_t vocabulary : {10, 65536, 65537, 200000}) {
        INFO(vocabulary);
        const auto file = TokenFile::open(write(folder / "a.h5", vocabulary, 0.3));
        const auto& info = file->info();
        CHECK(info.bytes_per_token == (vocabulary <= 65536 ? 2 : 4));
        CHECK(tokens(*file) ==
              std::vector<std::int64_t>{1, 2, 3, 4, vocabulary - 1, vocabulary - 2, 0, vocabulary - 1});
        CHECK(info.documents == 2);
        CHECK(file->document(0).begin == 0);
        CHECK(file->document(0).end == 5);
        CHECK(file->document(1).end == 8);
        CHECK_THROWS_AS(file->document(2), Error);
        CHECK(info.sources.size() == 2);
        CHECK(info.sources[1].path == "b/\xC3\xA9.txt");
        CHECK(info.sources[1].bytes == 4);
        CHECK(info.sources[0].sha256 == sha256_hex("a"));
        CHECK(info.tokenizer == "test");
        CHECK(info.key == sha256_hex("k"));
        CHECK(file->range(Split::training).size() == 6);
        CHECK(file->range(Split::validation).begin == 6);
        CHECK(file->range(Split::validation).end == 8);
        NoProgress progress;
        CHECK_NOTHROW(file->verify(progress, Cancellation()));
        std::int64_t one = 0;
        CHECK_THROWS_AS(file->copy(8, 1, &one), Error);
        CHECK_THROWS_AS(file->copy(-1, 1, &one), Error);
    }
    CHECK(folder.names() == std::vector<std::string>{"a.h5"});
}

TEST_CASE("a token file that was changed is noticed, one that was replaced stays readable", "[data]") {
    TemporaryFolder folder;
    const auto path = write(folder / "a.h5", 10, 0);
    const auto old = TokenFile::open(path);
    write(path, 20, 0);
    CHECK(old->info().vocabulary == 10);
    CHECK(tokens(*old).back() == 9);

    std::string bytes = read_file(path);
    const std::size_t at = bytes.find(std::string("\1\0\2\0\3\0\4\0", 8));
    REQUIRE(at != std::string::npos);
    bytes[at] = 7;
    const auto changed = TokenFile::open(write_file(folder / "b.h5", bytes));
    NoProgress progress;
    CHECK_THROWS_MATCHES(changed->verify(progress, Cancellation()), Error, IsError(ErrorCode::format, "/tokens"));
    bytes[at + 1] = 7;
    const auto wild = TokenFile::open(write_file(folder / "c.h5", bytes));
    CHECK_THROWS_MATCHES(tokens(*wild), Error, IsError(ErrorCode::format, "expected ids below 20; found 1799"));
}

TEST_CASE("what is no whole token file is refused, whatever is missing", "[data]") {
    TemporaryFolder folder;
    const std::string bytes = read_file(write(folder / "a.h5", 10, 0));
    CHECK_THROWS_MATCHES(TokenFile::open(folder / "none.h5"), Error, IsError(ErrorCode::io));
    CHECK_THROWS_AS(TokenFile::open(write_file(folder / "b.h5", "")), Error);
    CHECK_THROWS_AS(TokenFile::open(write_file(folder / "b.h5", "text")), Error);
    for (std::size_t size = 0; size < bytes.size(); size += 97) {
        CHECK_THROWS_AS(TokenFile::open(write_file(folder / "b.h5", bytes.substr(0, size))), Error);
    }
    CHECK_THROWS_AS(TokenFile::open(write_file(folder / "b.h5", bytes.substr(0, bytes.size() - 1))), Error);
}

TEST_CASE("a writer that is not finished, or cancelled, leaves nothing", "[data]") {
    TemporaryFolder folder;
    {
        TokenWriter writer(folder / "a.h5", info_of(10));
        writer.begin_document(0);
        writer.append(std::vector<std::int32_t>(5'000'000, 1));
        writer.end_document();
        CHECK(folder.names().empty());  // what waits on the disk has no name
        Cancellation cancellation;
        cancellation.request();
        CHECK_THROWS_AS(writer.publish(cancellation), Stopped);
    }
    CHECK(folder.names().empty());
    TokenWriter writer(folder / "a.h5", info_of(10));
    CHECK_THROWS_MATCHES(writer.append(std::vector<std::int32_t>{10}), Error, IsError(ErrorCode::internal));
    CHECK_THROWS_AS(TokenWriter(folder / "no" / "a.h5", info_of(10)), Error);
}

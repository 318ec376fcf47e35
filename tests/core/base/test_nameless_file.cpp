// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <array>
#include <filesystem>
#include <string>

#include "core/base/io/nameless_file.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/file_size_limit.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;

TEST_CASE("A nameless file gives back its bytes, and its folder stays empty", "[base]") {
    const test::TemporaryFolder folder;
    NamelessFile file(folder.path(), "tokens");
    file.write("first second", 12, 0);
    file.write("third", 5, 6);
    file.write("far", 3, 5000);
    CHECK(folder.names().empty());
    std::array<char, 12> bytes{};
    file.read(bytes.data(), bytes.size(), 0);
    CHECK(std::string(bytes.data(), bytes.size()) == "first thirdd");
    file.read(bytes.data(), 3, 5000);
    CHECK(std::string(bytes.data(), 3) == "far");
    REQUIRE_THROWS_MATCHES(file.read(bytes.data(), 4, 5000), Error,
                           test::IsError(ErrorCode::io, "expected to write tokens here"));
}

TEST_CASE("A nameless file without room ends in one line that names folder and content", "[base]") {
    const test::TemporaryFolder folder;
    NamelessFile file(folder.path(), "hidden states");
    const std::string bytes(64, 'x');
    file.write(bytes.data(), 64, 0);
    {
        const test::FileSizeLimit limit(64);
        REQUIRE_THROWS_MATCHES(file.write(bytes.data(), 64, 32), Error,
                               test::IsError(ErrorCode::io, "[" + folder.path().string() +
                                                                "] expected to write hidden states here; found "));
    }
    REQUIRE_THROWS_MATCHES(NamelessFile(folder / "missing", "hidden states"), Error,
                           test::IsError(ErrorCode::io, "missing"));
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <thread>

#include "core/base/io/output_file.h"
#include "core/base/io/output_folder.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/file_size_limit.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
using namespace headscope::test;
namespace fs = std::filesystem;

TEST_CASE("An output file appears only when it is published", "[base][output]") {
    const TemporaryFolder folder;
    {
        OutputFile file(folder / "a.csv");
        file.append("one,");
        file.append("two");
        REQUIRE(folder.names() == std::vector<std::string>{"a.csv.partial"});
        file.publish();
        REQUIRE(folder.names() == std::vector<std::string>{"a.csv"});
    }
    REQUIRE(read_file(folder / "a.csv") == "one,two");
}

TEST_CASE("A file of given bytes is whole or not there, and never an input", "[base][output]") {
    const TemporaryFolder folder;
    write_whole_file(folder / "a.txt", "one");
    write_whole_file(folder / "a.txt", "two\n", "table");
    REQUIRE(read_file(folder / "a.txt") == "two\n");
    const std::vector<fs::path> inputs{folder / "a.txt"};
    REQUIRE_THROWS_MATCHES(write_whole_file(folder / "a.txt", "three", "table", inputs), Error,
                           IsError(ErrorCode::usage, "a.txt"));
    REQUIRE(read_file(folder / "a.txt") == "two\n");
    REQUIRE(folder.names() == std::vector<std::string>{"a.txt"});
}

TEST_CASE("An output file that is not published leaves nothing and keeps what was there", "[base][output]") {
    const TemporaryFolder folder;
    write_file(folder / "a.csv", "old");
    {
        OutputFile file(folder / "a.csv");
        file.append("new");
    }
    REQUIRE(folder.names() == std::vector<std::string>{"a.csv"});
    REQUIRE(read_file(folder / "a.csv") == "old");
    {
        OutputFile file(folder / "a.csv");
        file.append("new");
        file.keep_partial();
    }
    REQUIRE(read_file(folder / "a.csv.partial") == "new");
}

TEST_CASE("A writer by path may truncate or replace the temporary file", "[base][output]") {
    const TemporaryFolder folder;
    OutputFile file(folder / "a");
    SECTION("truncated") {
        write_file(file.partial_path(), "by path");
    }
    SECTION("replaced") {
        fs::remove(file.partial_path());
        write_file(file.partial_path(), "by path");
    }
    file.publish();
    REQUIRE(read_file(folder / "a") == "by path");
}

TEST_CASE("Publishing a temporary file that is gone or is no file fails and leaves the target", "[base][output]") {
    const TemporaryFolder folder;
    write_file(folder / "a", "old");
    OutputFile file(folder / "a");
    fs::remove(file.partial_path());
    SECTION("gone") {}
    SECTION("a link") {
        fs::create_symlink(folder / "a", file.partial_path());
    }
    SECTION("a pipe") {
        REQUIRE(::mkfifo(file.partial_path().c_str(), 0600) == 0);
    }
    REQUIRE_THROWS_MATCHES(file.publish(), Error, IsError(ErrorCode::io));
    REQUIRE(read_file(folder / "a") == "old");
}

TEST_CASE("Two writers of one output do not mix; the last to publish wins", "[base][output]") {
    const TemporaryFolder folder;
    OutputFile first(folder / "a");
    OutputFile second(folder / "a");
    REQUIRE(first.partial_path() != second.partial_path());
    first.append("first");
    second.append("second");
    second.publish();
    first.publish();
    REQUIRE(read_file(folder / "a") == "first");
    REQUIRE(folder.names() == std::vector<std::string>{"a"});
}

TEST_CASE("A target that appears while it is checked is no dangling link", "[base][output]") {
    const TemporaryFolder folder;
    const auto target = folder / "x.h5";
    std::atomic<bool> done = false;
    std::thread other([&] {
        while (!done) {
            std::ofstream(target.string() + ".other") << "other";
            std::filesystem::rename(target.string() + ".other", target);
            std::filesystem::remove(target);
        }
    });
    std::string fault;
    for (int round = 0; round < 20000 && fault.empty(); ++round) {
        try {
            OutputFile::check_target(target, {});
        } catch (const Error& error) {
            // Gone between stat and access is the operating system's word, and true.
            if (std::string(error.what()).find("symbolic link") != std::string::npos) fault = error.what();
        }
    }
    done = true;
    other.join();
    CHECK(fault == "");
}

TEST_CASE("A temporary file left by a killed job is neither used nor removed", "[base][output]") {
    const TemporaryFolder folder;
    write_file(folder / "a.partial", "of a killed job");
    OutputFile file(folder / "a");
    file.append("new");
    file.publish();
    REQUIRE(read_file(folder / "a") == "new");
    REQUIRE(read_file(folder / "a.partial") == "of a killed job");
}

TEST_CASE("An output through a symbolic link replaces the file at its end and keeps its mode", "[base][output]") {
    const TemporaryFolder folder;
    fs::create_directory(folder / "far");
    write_file(folder / "far/real", "old");
    fs::permissions(folder / "far/real", fs::perms::owner_read | fs::perms::owner_write);
    fs::create_symlink(folder / "far/real", folder / "link");
    OutputFile file(folder / "link");
    file.append("new");
    file.publish();
    REQUIRE(fs::is_symlink(folder / "link"));
    REQUIRE(read_file(folder / "far/real") == "new");
    REQUIRE(fs::status(folder / "far/real").permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("Targets that cannot be are refused before anything is made", "[base][output]") {
    const TemporaryFolder folder;
    const auto refused = [&](const fs::path& target, ErrorCode code, const std::string& part) {
        const auto before = folder.names();
        REQUIRE_THROWS_MATCHES(OutputFile::check_target(target), Error, IsError(code, part));
        REQUIRE_THROWS_MATCHES(OutputFile(target), Error, IsError(code, part));
        REQUIRE(folder.names() == before);
    };
    fs::create_directory(folder / "sub");
    refused(folder / "sub", ErrorCode::usage, "found a folder");
    refused(folder.path() / "", ErrorCode::usage, "a folder's name");
    refused("", ErrorCode::usage, "found no name");
    refused(folder / "..", ErrorCode::usage, "a folder's name");
    refused("/dev/null", ErrorCode::usage, "found a character device");
    refused("/dev/full", ErrorCode::usage, "found a character device");
    refused(folder / "none/a", ErrorCode::io, "found nothing there");
    write_file(folder / "file", "x");
    refused(folder / "file/a", ErrorCode::io, "not a folder");
    refused(folder / std::string(300, 'x'), ErrorCode::io, "too long");
    refused(folder / std::string("a\0b", 3), ErrorCode::usage, "NUL");
    fs::create_symlink(folder / "nowhere", folder / "dangling");
    refused(folder / "dangling", ErrorCode::usage, "to a missing file");
    fs::create_symlink(folder / "loop", folder / "loop");
    refused(folder / "loop", ErrorCode::io, "circle");
    fs::create_symlink("/dev/null", folder / "device");
    refused(folder / "device", ErrorCode::usage, "found a character device");
    REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
    refused(folder / "pipe", ErrorCode::usage, "found a pipe");
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, (folder / "socket").c_str(), sizeof address.sun_path - 1);
    REQUIRE(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    refused(folder / "socket", ErrorCode::usage, "found a socket");
    ::close(socket);
}

TEST_CASE("A name whose temporary would be too long is one clear error", "[base][output]") {
    const TemporaryFolder folder;
    REQUIRE_THROWS_MATCHES(OutputFile(folder / std::string(250, 'x')), Error, IsError(ErrorCode::io, "too long"));
    REQUIRE(folder.names().empty());
}

TEST_CASE("An output that is an input is refused, through links too", "[base][output]") {
    const TemporaryFolder folder;
    const std::vector<fs::path> inputs = {folder / "absent", write_file(folder / "in", "x")};
    fs::create_symlink("in", folder / "symbolic");
    fs::create_hard_link(folder / "in", folder / "hard");
    for (const char* name : {"in", "symbolic", "hard", "./in"}) {
        REQUIRE_THROWS_MATCHES(OutputFile(folder / name, inputs), Error, IsError(ErrorCode::usage, "not an input"));
    }
    REQUIRE_NOTHROW(OutputFile(folder / "out", inputs));
}

TEST_CASE("A target that becomes a device meanwhile is not replaced", "[base][output]") {
    const TemporaryFolder folder;
    OutputFile file(folder / "a");
    file.append("x");
    fs::create_symlink("/dev/null", folder / "a");
    REQUIRE_THROWS_MATCHES(file.publish(), Error, IsError(ErrorCode::usage, "character device"));
    REQUIRE(fs::is_symlink(folder / "a"));
}

TEST_CASE("A full disk is one clear error and leaves nothing", "[base][output]") {
    const TemporaryFolder folder;
    {
        const FileSizeLimit limit(1000);
        OutputFile file(folder / "a");
        REQUIRE_THROWS_MATCHES(file.append(std::string(5000, 'x')), Error, IsError(ErrorCode::io, "size limit"));
    }
    REQUIRE(folder.names().empty());
}

TEST_CASE("A folder without permission is one clear error", "[base][output]") {
    const TemporaryFolder folder;
    if (::geteuid() == 0) return;  // root may write everywhere
    fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
    REQUIRE_THROWS_MATCHES(OutputFile(folder / "a"), Error, IsError(ErrorCode::io, "permission"));
    fs::permissions(folder.path(), fs::perms::owner_all);
    write_file(folder / "fixed", "x");
    fs::permissions(folder / "fixed", fs::perms::owner_read);
    REQUIRE_THROWS_MATCHES(OutputFile(folder / "fixed"), Error, IsError(ErrorCode::io, "permission"));
}

TEST_CASE("An output folder appears only when it is published", "[base][output]") {
    const TemporaryFolder folder;
    const bool there = GENERATE(false, true);
    if (there) fs::create_directory(folder / "out");
    {
        OutputFolder out(folder / "out/");
        write_file(out.partial_path() / "a", "x");
        REQUIRE(fs::exists(folder / "out") == there);
        out.publish();
    }
    REQUIRE(folder.names() == std::vector<std::string>{"out"});
    REQUIRE(read_file(folder / "out/a") == "x");
    {
        OutputFolder out(folder / "other");
        write_file(out.partial_path() / "a", "x");
    }
    REQUIRE(folder.names() == std::vector<std::string>{"out"});
}

TEST_CASE("Output folders that cannot be are refused", "[base][output]") {
    const TemporaryFolder folder;
    fs::create_directories(folder / "full/sub");
    write_file(folder / "file", "x");
    fs::create_symlink("nowhere", folder / "dangling");
    fs::create_directory(folder / "input");
    const std::vector<fs::path> inputs = {folder / "input"};
    const auto refused = [&](const fs::path& target, ErrorCode code, const std::string& part) {
        REQUIRE_THROWS_MATCHES(OutputFolder(target, inputs), Error, IsError(code, part));
    };
    refused(folder / "full", ErrorCode::usage, "not empty");
    refused(folder / "file", ErrorCode::usage, "found a regular file");
    refused(folder / "dangling", ErrorCode::usage, "to a missing file");
    refused(folder / "input", ErrorCode::usage, "not an input");
    refused(folder / "none/a", ErrorCode::io, "found nothing there");
    refused("/dev/null", ErrorCode::usage, "character device");
    refused("", ErrorCode::usage, "no name");
    OutputFolder late(folder / "late");
    write_file(folder / "late", "someone else was faster");
    REQUIRE_THROWS_MATCHES(late.publish(), Error, IsError(ErrorCode::usage, "found a regular file"));
}

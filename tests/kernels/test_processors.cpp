// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "core/base/machine/memory_room.h"
#include "core/base/machine/processors.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
using test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

void put(const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
}

}  // namespace

TEST_CASE("The processors of a container are those that its control groups give time for", "[processors]") {
    const TemporaryFolder folder;
    const fs::path mount = folder.path();
    const auto limit = [&](const std::string& groups) { return processor_limit(groups, mount.string()); };

    CHECK(std::isinf(limit("")));
    CHECK(std::isinf(limit("0::/\n")));  // no limit
    CHECK(std::isinf(limit("nonsense\n1:\n2:cpu\n3::relative\n")));

    SECTION("version 2: the least of a group and those above it") {
        put(mount / "a.slice/b/cpu.max", "max 100000\n");
        CHECK(std::isinf(limit("0::/a.slice/b\n")));
        put(mount / "a.slice/cpu.max", "250000 100000\n");
        CHECK(limit("0::/a.slice/b\n") == 2.5);
        put(mount / "a.slice/b/cpu.max", "100000 200000\n");
        CHECK(limit("0::/a.slice/b\n") == 0.5);
        CHECK(limit("0::/a.slice\n") == 2.5);
        CHECK(std::isinf(limit("0::/other\n")));
    }
    SECTION("version 2 in a container: the group is the root, whatever its path on the host") {
        put(mount / "cpu.max", "150000 100000\n");
        CHECK(limit("0::/\n") == 1.5);
        CHECK(limit("0::/../../docker/12\n") == 1.5);
    }
    SECTION("version 1: the controller's own tree, under either name") {
        put(mount / "cpu,cpuacct/docker/1f/cpu.cfs_quota_us", "-1\n");
        put(mount / "cpu,cpuacct/docker/1f/cpu.cfs_period_us", "100000\n");
        const std::string groups = "5:cpuset:/docker/1f\n4:cpu,cpuacct:/docker/1f\n";
        CHECK(std::isinf(limit(groups)));
        put(mount / "cpu,cpuacct/docker/1f/cpu.cfs_quota_us", "300000\n");
        CHECK(limit(groups) == 3);
        put(mount / "cpu/cpu.cfs_quota_us", "50000\n");
        put(mount / "cpu/cpu.cfs_period_us", "100000\n");
        CHECK(limit(groups) == 0.5);
        CHECK(std::isinf(limit("5:cpuset:/docker/1f\n")));
    }
    SECTION("what is no number limits nothing") {
        put(mount / "cpu.max", "many\n");
        CHECK(std::isinf(limit("0::/\n")));
        put(mount / "cpu.max", "100000\n");
        CHECK(std::isinf(limit("0::/\n")));
        put(mount / "cpu.max", "100000 0\n");
        CHECK(std::isinf(limit("0::/\n")));
    }
}

TEST_CASE("There is always a processor to use", "[processors]") {
    CHECK(usable_processors() >= 1);
}

TEST_CASE("Memory is what the machine has available, and no more than control groups leave", "[processors][memory]") {
    const TemporaryFolder folder;
    const fs::path mount = folder.path();
    const std::string meminfo = "MemTotal:  8000 kB\nMemFree:  1000 kB\nMemAvailable:   4000 kB\n";
    const auto room = [&](const std::string& groups) { return memory_room(meminfo, groups, mount.string()); };
    constexpr double machine = 4000 * 1024;
    CHECK(room("") == machine);
    CHECK(memory_room("", "", mount.string()) == 0);  // no source

    SECTION("version 2: a limit less what is used and could not be had back") {
        put(mount / "a/memory.max", "max\n");
        put(mount / "a/memory.current", "500000\n");
        CHECK(room("0::/a/b\n") == machine);
        put(mount / "a/memory.max", "1000000\n");
        CHECK(room("0::/a/b\n") == 500'000);
        put(mount / "a/memory.stat", "anon 100000\ninactive_file 300000\nactive_file 5\n");
        CHECK(room("0::/a/b\n") == 800'000);
        put(mount / "a/memory.current", "2000000\n");
        CHECK(room("0::/a/b\n") == 1);  // full
        CHECK(room("0::/other\n") == machine);
    }
    SECTION("version 1: the controller's own tree") {
        put(mount / "memory/docker/1f/memory.limit_in_bytes", "9223372036854771712\n");
        put(mount / "memory/docker/1f/memory.usage_in_bytes", "600000\n");
        const std::string groups = "5:cpu:/docker/1f\n4:memory:/docker/1f\n";
        CHECK(room(groups) == machine);
        put(mount / "memory/docker/1f/memory.limit_in_bytes", "900000\n");
        CHECK(room(groups) == 300'000);
        put(mount / "memory/docker/1f/memory.stat", "inactive_file 1\ntotal_inactive_file 100000\n");
        CHECK(room(groups) == 400'000);
    }
    SECTION("without the machine's own word the group's limit is all that is known") {
        put(mount / "memory.max", "700000\n");
        put(mount / "memory.current", "200000\n");
        CHECK(memory_room("", "0::/\n", mount.string()) == 500'000);
    }
}

TEST_CASE("This machine has memory to give", "[processors][memory]") {
    CHECK(memory_room() > 0);
}

TEST_CASE("A process may take no more than its limits leave", "[processors][memory]") {
    const std::string status = "Name:\theadscope\nVmSize:\t  900000 kB\nVmData:\t  400000 kB\n";
    const double none = std::numeric_limits<double>::infinity();
    CHECK(std::isinf(limits_left(status, none, none)));
    CHECK(limits_left(status, 1e9, none) == 1e9 - 900000 * 1024.0);
    CHECK(limits_left(status, none, 1e9) == 1e9 - 400000 * 1024.0);
    CHECK(limits_left(status, 1e9, 1e9) == 1e9 - 900000 * 1024.0);
    CHECK(limits_left(status, 5e8, none) == 1);  // full
    CHECK(own_memory_room() > 0);
}

// SPDX-License-Identifier: GPL-3.0-or-later
// Files that end early, have changed bits, claim sizes, or change while they are read.
#include <catch2/catch.hpp>

#include <hdf5.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>

#include "core/base/error.h"
#include "core/base/process/cancellation_scope.h"
#include "core/store/analysis/analysis_file.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/hostile_file.h"
#include "tests/core/store/synthetic_analysis.h"

using namespace headscope;
using tests::changed_file;
using tests::new_list;
using tests::replace;
namespace fs = std::filesystem;

namespace {

/// Runs `body` in a child, as the program does with files from elsewhere: the library itself may fail on them.
int in_child(const std::function<void()>& body) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        ::alarm(20);
        for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS}) std::signal(signal, SIG_DFL);  // not Catch's
        ::close(STDERR_FILENO);  // what the C library says of a heap that was spoilt
        try {
            body();
        } catch (const Error& error) {
            ::_exit(error.code() == ErrorCode::internal ? 3 : 1);
        } catch (...) {
            ::_exit(4);
        }
        ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void read_everything(const fs::path& path) {
    const auto file = store::AnalysisFile::open(path);
    for (const auto& name : file->indicators()) file->indicator(name);
    for (const auto& name : {"minimum", "maximum", "mean", "variance", "above"}) file->score_statistic(name);
    file->histogram_edges();
    for (std::int64_t s = 0; s < std::ssize(file->header().sequences); ++s) {
        file->loss(s);
        for (std::int64_t site = 0; site < std::ssize(file->header().sites); ++site) {
            file->thumbnail("mean", s, site);
            file->histogram(s, site);
            file->column_mass(s, site);
            const auto map = file->map(s, site);
        }
    }
}

}  // namespace

TEST_CASE("Files that are no analysis, or end early, are one Error", "[store][hostile]") {
    const test::TemporaryFolder folder;
    CHECK_THROWS_AS(store::AnalysisFile::open(folder / "absent.h5"), Error);
    CHECK_THROWS_AS(store::AnalysisFile::open(folder.path()), Error);
    CHECK_THROWS_AS(store::AnalysisFile::open("/dev/null"), Error);
    const auto path = folder / "a.headscope.h5", cut = folder / "cut.h5";
    std::ofstream(cut) << "no HDF5 at all";
    CHECK_THROWS_AS(store::AnalysisFile::open(cut), Error);
    const hid_t empty = H5Fcreate((folder / "empty.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(empty);
    CHECK_THROWS_AS(store::AnalysisFile::open(folder / "empty.h5"), Error);

    tests::write_synthetic_analysis(path);
    const auto size = fs::file_size(path);
    for (std::uintmax_t keep = 0; keep < size; keep += 1 + size / 97) {
        fs::copy_file(path, cut, fs::copy_options::overwrite_existing);
        fs::resize_file(cut, keep);
        REQUIRE_THROWS_AS(store::AnalysisFile::open(cut), Error);
    }
}

TEST_CASE("Changed bits are read, refused or end a child, and never take memory or time", "[store][hostile]") {
    const test::TemporaryFolder folder;
    tests::SyntheticAnalysis a;
    a.record.maps = true;
    tests::write_synthetic_analysis(folder / "a.headscope.h5", a);
    const std::string whole = test::read_file(folder / "a.headscope.h5");
    REQUIRE(in_child([&] { read_everything(folder / "a.headscope.h5"); }) == 0);
    // Half of them in the structures at the file's beginning, where a bit does most.
    std::mt19937_64 random(11);
    int read = 0, refused = 0;
    for (int round = 0; round < 150; ++round) {
        std::string changed = whole;
        const std::size_t within = round % 2 == 0 ? 4096 : whole.size();
        for (int i = 0; i <= round % 3; ++i) {
            auto& byte = changed[random() % within];
            byte = static_cast<char>(static_cast<unsigned char>(byte) ^ (1U << (random() % 8)));
        }
        const auto path = test::write_file(folder / "changed", changed);
        const int status = in_child([&] { read_everything(path); });
        INFO("round " << round << ", status " << status);
        CHECK(status != 3);              // a refusal that was not understood
        CHECK(status != 4);              // not an Error
        CHECK(status != 128 + SIGALRM);  // no end
        read += status == 0 ? 1 : 0;
        refused += status == 1 ? 1 : 0;
    }
    CHECK(read > 20);
    CHECK(refused > 20);
}

TEST_CASE("Sizes that cost nothing to claim are refused before memory is taken", "[store][hostile]") {
    const test::TemporaryFolder folder;
    const auto refusal = [&](const fs::path& path) -> std::string {
        try {
            store::AnalysisFile::open(path);
        } catch (const Error& error) {
            return error.what();
        }
        return "none";
    };
    const auto holes = changed_file(folder, [](hid_t) {});
    fs::resize_file(holes, std::uintmax_t{1} << 40U);
    CHECK(refusal(holes).find("holes") != std::string::npos);

    const auto tokens = changed_file(folder, [](hid_t file) {
        const hid_t list = new_list();
        const hsize_t chunk[] = {1, 1 << 20};
        H5Pset_chunk(list, 2, chunk);
        H5Pset_deflate(list, 6);
        replace(file, "/tokens/ids", H5T_STD_I32LE, {1, 1 << 24}, list);
    });
    CHECK(refusal(tokens).find("/tokens/ids") != std::string::npos);

    const auto no_heads = changed_file(folder, [](hid_t file) {
        const hid_t id = H5Dopen2(file, "/sites/heads", H5P_DEFAULT);
        const std::int32_t none[] = {0, 0, 0};
        REQUIRE(H5Dwrite(id, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, none) >= 0);
        H5Dclose(id);
    });
    CHECK(refusal(no_heads).find("/sites/heads") != std::string::npos);
}

TEST_CASE("A complete file that is written to while it is read is refused", "[store][hostile]") {
    const test::TemporaryFolder folder;
    const auto path = changed_file(folder, [](hid_t) {});
    const auto file = store::AnalysisFile::open(path);
    CHECK_NOTHROW(file->indicator("entropy"));
    fs::last_write_time(path, fs::file_time_type::clock::now() + std::chrono::seconds(5));
    try {
        file->indicator("entropy");
        FAIL("was read");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::mismatch);
        CHECK(error.found().find("written") != std::string::npos);
    }
}

TEST_CASE("Reading stops within a scope that was asked to, and the file stays usable", "[store][hostile]") {
    const test::TemporaryFolder folder;
    const auto path = changed_file(folder, [](hid_t) {});
    const auto file = store::AnalysisFile::open(path);
    Cancellation cancellation;
    cancellation.request();
    {
        const CancellationScope scope(cancellation);
        CHECK_THROWS_AS(file->indicator("entropy"), Stopped);
        CHECK_THROWS_AS(store::AnalysisFile::open(path), Stopped);
    }
    CHECK(file->indicator("entropy").data.size() == 12);
}

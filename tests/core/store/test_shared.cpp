// SPDX-License-Identifier: GPL-3.0-or-later
// One file that is written and read at the same time: by two threads, by two processes, and while it gets its name.
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/process/cancellation_scope.h"
#include "core/store/analysis/analysis_file.h"
#include "core/store/hdf5/read_handle.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"

using namespace headscope;
namespace fs = std::filesystem;

namespace {

tests::SyntheticAnalysis with_maps(std::int32_t layers) {
    tests::SyntheticAnalysis a;
    a.lengths = {31, 19};
    a.layers = layers;
    a.record.maps = true;
    return a;
}

std::string bytes_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Every value of a site that is done must be the one that was made for it.
bool holds_site(const store::AnalysisFile& file, const tests::SyntheticAnalysis& a, std::int64_t s, std::int32_t site) {
    const std::int64_t length = a.lengths.at(static_cast<std::size_t>(s));
    const auto place = static_cast<std::size_t>((s * a.layers + site) * a.heads);
    const std::uint64_t seed = a.seed + 17 * static_cast<std::uint64_t>(s);
    const auto expected = tests::synthetic_statistics(a, length, site, seed);
    const auto entropy = file.indicator("entropy").data;
    const auto map = file.map(s, site);
    const auto made = tests::synthetic_map(a, length, seed + static_cast<std::uint64_t>(site));
    return std::equal(expected.entropy.begin(), expected.entropy.end(), entropy.begin() + std::ptrdiff_t(place)) &&
           map.has_value() && map->query == made.query && map->row_constant == made.row_constant;
}

}  // namespace

TEST_CASE("A thread reads the partial file, and another one, while the compute thread writes", "[store][shared]") {
    const auto a = with_maps(6);
    const test::TemporaryFolder folder;
    const auto other_path = folder / "other.headscope.h5";
    tests::write_synthetic_analysis(other_path, a);
    store::AnalysisWriter writer(folder / "a.headscope.h5", tests::synthetic_header(a));
    std::atomic<bool> written = false, opened = false;
    std::atomic<int> wrong = 0, reads = 0, seen_unfinished = 0;
    std::thread reader([&] {
        try {
            const auto file = store::AnalysisFile::open(writer.partial_path());
            opened = true;
            bool last = false;
            for (std::int64_t round = 0; !last; ++round) {
                last = written;  // one more round over everything once it is
                const auto other = store::AnalysisFile::open(other_path);
                for (std::int64_t s = 0; s < 2; ++s) {
                    for (std::int32_t site = 0; site < a.layers; ++site) {
                        ++reads;
                        if (!file->site_done(s, site))
                            ++(last ? wrong : seen_unfinished);
                        else if (!holds_site(*file, a, s, site))
                            ++wrong;
                    }
                }
                const auto s = round % 2;
                if (!holds_site(*other, a, s, static_cast<std::int32_t>(round % a.layers))) ++wrong;
            }
        } catch (const Error& error) {
            ++wrong;
        }
        opened = true;
    });
    while (!opened) std::this_thread::yield();
    for (std::int64_t s = 0; s < 2; ++s) {
        for (std::int32_t layer = 0; layer < a.layers; ++layer) {
            const int before = reads;
            tests::write_synthetic_layer(writer, a, s, layer);
            while (reads < before + 2 && wrong == 0) std::this_thread::yield();  // the threads take turns
        }
    }
    written = true;
    reader.join();
    CHECK(wrong == 0);
    CHECK(seen_unfinished > 0);
    writer.publish();
    CHECK(store::AnalysisFile::open(folder / "a.headscope.h5")->complete());
}

TEST_CASE("Publishing closes the file for good while readers keep reading it by its new name", "[store][shared]") {
    const auto a = with_maps(2);
    const test::TemporaryFolder folder;
    const auto path = folder / "a.headscope.h5";
    store::AnalysisWriter writer(path, tests::synthetic_header(a));
    tests::write_synthetic_layer(writer, a, 0, 0);
    auto file = store::AnalysisFile::open(writer.partial_path());
    const auto second = store::AnalysisFile::open(writer.partial_path());
    REQUIRE(file->site_done(0, 0));
    CHECK_FALSE(file->complete());
    for (const auto& [s, layer] : {std::pair{0, 1}, {1, 0}, {1, 1}}) tests::write_synthetic_layer(writer, a, s, layer);
    tests::write_synthetic_output(writer, a, 0);
    tests::write_synthetic_output(writer, a, 1);
    writer.publish();
    const std::string published = bytes_of(path);
    const auto changed = fs::last_write_time(path);

    CHECK(file->path() == folder / "a.headscope.h5.partial");
    CHECK(holds_site(*file, a, 1, 1));
    CHECK(file->complete());
    file->check();
    // Another file takes the name: each reader keeps the one that it opened.
    auto next = a;
    next.seed = 77;
    tests::write_synthetic_analysis(path, next);
    CHECK(holds_site(*store::AnalysisFile::open(path), next, 1, 0));
    CHECK(holds_site(*second, a, 1, 0));
    CHECK(holds_site(*file, a, 0, 1));
    file.reset();

    // And what was published does not change when the last reader goes.
    const auto kept = folder / "b.headscope.h5";
    {
        store::AnalysisWriter again(kept, tests::synthetic_header(a));
        const auto reader = store::AnalysisFile::open(again.partial_path());
        for (const auto& [s, layer] : {std::pair{0, 0}, {0, 1}, {1, 0}, {1, 1}})
            tests::write_synthetic_layer(again, a, s, layer);
        tests::write_synthetic_output(again, a, 0);
        tests::write_synthetic_output(again, a, 1);
        again.publish();
        CHECK(bytes_of(kept) == published);
        CHECK(reader->site_done(1, 1));
    }
    CHECK(bytes_of(kept) == published);
    CHECK(fs::last_write_time(kept) >= changed);
}

TEST_CASE("A reader outlives a writer that gives up, with what was written", "[store][shared]") {
    const auto a = with_maps(2);
    const bool keep = GENERATE(false, true);
    const test::TemporaryFolder folder;
    std::shared_ptr<store::AnalysisFile> file;
    {
        store::AnalysisWriter writer(folder / "a.headscope.h5", tests::synthetic_header(a));
        if (keep) writer.keep_partial();
        file = store::AnalysisFile::open(writer.partial_path());
        tests::write_synthetic_layer(writer, a, 0, 0);
    }
    CHECK(folder.names().size() == (keep ? 1 : 0));
    CHECK(holds_site(*file, a, 0, 0));
    CHECK_FALSE(file->site_done(1, 0));
    CHECK_FALSE(file->complete());
    if (!keep) return;
    const std::string left = bytes_of(folder / "a.headscope.h5.partial");
    file.reset();
    CHECK(bytes_of(folder / "a.headscope.h5.partial") == left);
}

TEST_CASE("Another process reads the partial file of a running job as it grows", "[store][shared]") {
    const auto a = with_maps(3);
    const test::TemporaryFolder folder;
    int to_child[2], to_parent[2];
    REQUIRE(::pipe(to_child) == 0);
    REQUIRE(::pipe(to_parent) == 0);
    const auto send = [](int to) { return ::write(to, "x", 1) == 1; };
    const auto receive = [](int from) {
        char byte = 0;
        return ::read(from, &byte, 1) == 1;
    };
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        ::alarm(60);
        const auto write = [&] {
            store::AnalysisWriter writer(folder / "a.headscope.h5", tests::synthetic_header(a));
            tests::write_synthetic_layer(writer, a, 0, 0);
            if (!send(to_parent[1]) || !receive(to_child[0])) return;
            // A table of a rule: the one thing that makes the file grow.
            auto map = tests::synthetic_map(a, 31, a.seed + 1);
            map.rule.bias_length = 1 << 10;
            map.rule.distance_bias.assign(std::size_t{4} << 10U, 0.0F);
            writer.write_map(0, 1, map.query, map.key, map.row_constant, map.rule, 0);
            writer.write_site(0, 1, tests::synthetic_statistics(a, 31, 1, a.seed), 0);
            if (!send(to_parent[1]) || !receive(to_child[0])) return;
            writer.publish();
            send(to_parent[1]);
        };
        write();
        std::_Exit(0);
    }
    REQUIRE(receive(to_parent[0]));
    const auto file = store::AnalysisFile::open(folder / "a.headscope.h5.partial");
    CHECK_FALSE(file->complete());
    CHECK(holds_site(*file, a, 0, 0));
    CHECK_FALSE(file->site_done(0, 1));
    using Places = std::set<std::pair<std::int64_t, std::int64_t>>;
    CHECK(file->done_sites() == Places{{0, 0}});
    REQUIRE(send(to_child[1]));
    REQUIRE(receive(to_parent[0]));
    CHECK(file->site_done(0, 1));
    CHECK(file->done_sites() == Places{{0, 0}, {0, 1}});
    CHECK(holds_site(*file, a, 0, 1));
    CHECK(file->map(0, 1)->rule.bias_length == 1 << 10);
    REQUIRE(send(to_child[1]));
    REQUIRE(receive(to_parent[0]));
    CHECK(holds_site(*file, a, 0, 1));
    CHECK(file->complete());
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    for (const int end : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) ::close(end);
}

TEST_CASE("Reading can be stopped while a writer shares the file, which stays sound", "[store][shared]") {
    const auto a = with_maps(2);
    const test::TemporaryFolder folder;
    store::AnalysisWriter writer(folder / "a.headscope.h5", tests::synthetic_header(a));
    tests::write_synthetic_layer(writer, a, 0, 0);
    const auto file = store::AnalysisFile::open(writer.partial_path());
    Cancellation stopped;
    stopped.request();
    {
        const CancellationScope scope(stopped);
        CHECK_THROWS_AS(file->map(0, 0), Stopped);
        CHECK_THROWS_AS(file->indicator("sink"), Stopped);
    }
    CHECK(holds_site(*file, a, 0, 0));
    tests::write_synthetic_layer(writer, a, 0, 1);
    writer.publish();
    CHECK(holds_site(*file, a, 0, 1));
}

TEST_CASE("Stopped anywhere within its reads, a file is read well by the next one", "[store][shared]") {
    const auto a = with_maps(6);
    const test::TemporaryFolder folder;
    tests::write_synthetic_analysis(folder / "a.headscope.h5", a);
    const auto read_all = [&](const store::AnalysisFile& file) {
        for (std::int32_t site = 0; site < 6; ++site)
            for (std::int64_t s = 0; s < 2; ++s)
                if (!holds_site(file, a, s, site)) return false;
        return true;
    };
    const auto begin = std::chrono::steady_clock::now();
    REQUIRE(read_all(*store::AnalysisFile::open(folder / "a.headscope.h5")));
    const auto whole = std::chrono::steady_clock::now() - begin;
    constexpr int kMoments = 40;
    for (int moment = 0; moment < kMoments; ++moment) {
        const auto file = store::AnalysisFile::open(folder / "a.headscope.h5");
        Cancellation cancellation;
        std::thread stopping([&] {
            std::this_thread::sleep_for(whole * moment / kMoments);
            cancellation.request();
        });
        bool good = true;  // CHECK would keep Stopped for itself
        try {
            const CancellationScope scope(cancellation);
            good = read_all(*file);
        } catch (const Stopped&) {
        }
        stopping.join();
        CHECK(good);
        CHECK(read_all(*file));
    }
}

TEST_CASE("A file whose disk failed for a while is read well again", "[store][shared]") {
    const auto a = with_maps(2);
    const test::TemporaryFolder folder;
    const auto path = folder / "a.headscope.h5";
    tests::write_synthetic_analysis(path, a);
    const auto file = store::AnalysisFile::open(path), same = store::AnalysisFile::open(path);
    // HDF5's own descriptor; ours do not block.
    int descriptor = -1;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        const int number = std::stoi(entry.path().filename().string());
        if (fs::read_symlink(entry.path(), gone) != path || (::fcntl(number, F_GETFL) & O_NONBLOCK) != 0) continue;
        REQUIRE(descriptor == -1);
        descriptor = number;
    }
    REQUIRE(descriptor >= 0);
    const int good = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0), bad = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    REQUIRE(::dup2(bad, descriptor) == descriptor);
    CHECK_THROWS_MATCHES(file->map(0, 1), Error, test::IsError(ErrorCode::io, "Bad file descriptor"));
    REQUIRE(::dup2(good, descriptor) == descriptor);
    for (const int number : {good, bad}) ::close(number);
    for (const auto& one : {file, same})
        for (std::int32_t site = 0; site < 2; ++site) CHECK(holds_site(*one, a, 0, site));
}

TEST_CASE("A program that is started while a file is open does not hold it", "[store][shared]") {
    const auto a = with_maps(1);
    const test::TemporaryFolder folder;
    const store::AnalysisWriter writer(folder / "a.headscope.h5", tests::synthetic_header(a));
    tests::write_synthetic_analysis(folder / "b.headscope.h5");
    const auto file = store::AnalysisFile::open(folder / "b.headscope.h5");
    int open = 0;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        if (fs::read_symlink(entry.path(), gone).parent_path() != folder.path()) continue;
        ++open;
        CHECK((::fcntl(std::stoi(entry.path().filename().string()), F_GETFD) & FD_CLOEXEC) != 0);
    }
    CHECK(open > 0);
}

TEST_CASE("A complete file that another program writes into is refused", "[store][shared]") {
    const test::TemporaryFolder folder;
    const auto path = folder / "a.headscope.h5";
    tests::write_synthetic_analysis(path);
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    REQUIRE(::flock(descriptor, LOCK_EX) == 0);
    CHECK_THROWS_MATCHES(store::AnalysisFile::open(path), Error,
                         test::IsError(ErrorCode::io, "held by another program"));
    ::close(descriptor);
    CHECK(store::AnalysisFile::open(path)->complete());
}

TEST_CASE("Of many analyses a few are open in HDF5, and all of them can be read", "[store][shared]") {
    const auto a = with_maps(1);
    const test::TemporaryFolder folder;
    const auto first = folder / "0.headscope.h5";
    tests::write_synthetic_analysis(first, a);
    std::vector<std::shared_ptr<store::AnalysisFile>> files;
    for (std::size_t i = 0; i < 3 * store::ReadHandle::kMostOpen / 2; ++i) {
        const auto path = folder / (std::to_string(i) + ".headscope.h5");
        if (i > 0) fs::copy_file(first, path);
        files.push_back(store::AnalysisFile::open(path));
    }
    const auto expected = files.front()->indicator("sink").data;
    for (int round = 0; round < 2; ++round)
        for (const auto& file : files) {
            CHECK(file->indicator("sink").data == expected);
            CHECK(file->complete());
        }
    // HDF5 has a descriptor of each open file, beside our two.
    std::size_t open = 0;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        if (fs::read_symlink(entry.path(), gone).parent_path() == folder.path()) ++open;
    }
    CHECK(open > 2 * files.size());
    CHECK(open <= 2 * files.size() + store::ReadHandle::kMostOpen);
    // One that was closed in between is read under its new name, too.
    fs::rename(first, folder / "renamed.headscope.h5");
    CHECK(files.front()->indicator("sink").data == expected);
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <functional>

#include "core/base/error.h"
#include "core/store/analysis/analysis_file.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"

using namespace headscope;
namespace fs = std::filesystem;

namespace {

/// Runs `body` in a child process and returns what waitpid says of it. The child ends through exit(), as programs do.
int in_child(const std::function<int()>& body) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        ::alarm(60);
        int result = 99;
        try {
            result = body();
        } catch (...) {
        }
        std::exit(result);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return status;
}

std::vector<std::string> names_in(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
    return names;
}

}  // namespace

TEST_CASE("A process that dies between sites leaves a partial file that holds the earlier sites whole", "[store]") {
    tests::SyntheticAnalysis a;
    a.lengths = {40, 25};
    a.layers = 5;
    a.record = {true, true, true, true, false};
    const int written = GENERATE(0, 1, 4);
    const test::TemporaryFolder folder;
    const auto path = folder / "a.headscope.h5";
    const int status = in_child([&]() -> int {
        store::AnalysisWriter writer(path, tests::synthetic_header(a));
        for (std::int32_t layer = 0; layer < written; ++layer) tests::write_synthetic_layer(writer, a, 0, layer);
        // In the middle of the next layer: its map is there, its statistics are not.
        const auto map = tests::synthetic_map(a, 40, 1);
        writer.write_map(0, written, map.query, map.key, map.row_constant, map.rule, 0);
        std::raise(SIGKILL);
        return 0;
    });
    REQUIRE(WIFSIGNALED(status));
    REQUIRE_FALSE(fs::exists(path));
    const auto file = store::AnalysisFile::open(folder / "a.headscope.h5.partial");
    CHECK_FALSE(file->complete());
    file->check();
    const auto entropy = file->indicator("entropy");
    for (std::int32_t site = 0; site < 5; ++site) {
        CHECK(file->site_done(0, site) == (site < written));
        CHECK_FALSE(file->site_done(1, site));
        const auto expected = tests::synthetic_statistics(a, 40, site, a.seed);
        for (std::size_t h = 0; h < 4; ++h) {
            const double found = entropy.data[static_cast<std::size_t>(site) * 4 + h];
            if (site < written)
                CHECK(found == expected.entropy[h]);
            else
                CHECK(std::isnan(found));
        }
        CHECK(file->map(0, site).has_value() == (site < written));
        if (site >= written) continue;
        const auto made = tests::synthetic_map(a, 40, a.seed + static_cast<std::uint64_t>(site));
        CHECK(file->map(0, site)->query == made.query);
        CHECK(file->attention_rows(0, site, 3, 39, 1)->data[39] == 0.025F);
    }
}

TEST_CASE("A killed process's partial file does not stand in the way of the next run", "[store]") {
    const test::TemporaryFolder folder;
    const auto path = folder / "a.headscope.h5";
    in_child([&]() -> int {
        store::AnalysisWriter writer(path, tests::synthetic_header({}));
        std::raise(SIGKILL);
        return 0;
    });
    REQUIRE(fs::exists(folder / "a.headscope.h5.partial"));
    tests::write_synthetic_analysis(path);
    CHECK(store::AnalysisFile::open(path)->complete());
}

TEST_CASE("A discarded writer leaves nothing, unless asked to keep the partial file", "[store]") {
    const test::TemporaryFolder folder;
    const auto path = folder / "a.headscope.h5";
    {
        store::AnalysisWriter writer(path, tests::synthetic_header({}));
        CHECK(fs::exists(writer.partial_path()));
    }
    CHECK(names_in(folder.path()).empty());
    {
        store::AnalysisWriter writer(path, tests::synthetic_header({}));
        writer.keep_partial();
    }
    CHECK(names_in(folder.path()) == std::vector<std::string>{"a.headscope.h5.partial"});
}

TEST_CASE("The file of a running job can be read by the process that writes it", "[store]") {
    tests::SyntheticAnalysis a;
    const test::TemporaryFolder folder;
    store::AnalysisWriter writer(folder / "a.headscope.h5", tests::synthetic_header(a));
    const auto file = store::AnalysisFile::open(writer.partial_path());
    CHECK_FALSE(file->site_done(0, 1));
    tests::write_synthetic_layer(writer, a, 0, 1);
    CHECK(file->site_done(0, 1));
    CHECK_FALSE(file->complete());
}

TEST_CASE("Two writers of one name end in one whole file", "[store]") {
    tests::SyntheticAnalysis first, second;
    first.model_name = "first";
    second.model_name = "second";
    const test::TemporaryFolder folder;
    const auto path = folder / "a.headscope.h5";
    store::AnalysisWriter a(path, tests::synthetic_header(first)), b(path, tests::synthetic_header(second));
    CHECK(a.partial_path() != b.partial_path());
    tests::write_synthetic_layer(a, first, 0, 0);
    tests::write_synthetic_layer(b, second, 0, 1);
    b.publish();
    CHECK(store::AnalysisFile::open(path)->header().model_name == "second");
    a.publish();
    const auto file = store::AnalysisFile::open(path);
    CHECK(file->header().model_name == "first");
    CHECK((file->site_done(0, 0) && !file->site_done(0, 1)));
    CHECK(names_in(folder.path()).size() == 1);
}

TEST_CASE("A disk that fills up is one Error, and leaves nothing", "[store]") {
    const test::TemporaryFolder folder;
    const auto path = folder / "a.headscope.h5";
    // A limit on file sizes stands in for the full disk: at creation (small), and at the late table of a rule (large).
    const bool late = GENERATE(false, true);
    tests::SyntheticAnalysis a;
    a.lengths = {64};
    a.record.maps = true;
    const int status = in_child([&]() -> int {
        std::signal(SIGXFSZ, SIG_IGN);
        const auto limit_to = [](std::uint64_t bytes) {
            const rlimit limit{bytes, bytes};
            return ::setrlimit(RLIMIT_FSIZE, &limit) == 0;
        };
        if (!late && !limit_to(20000)) return 2;
        try {
            store::AnalysisWriter writer(path, tests::synthetic_header(a));
            if (!late) return 3;
            if (!limit_to(fs::file_size(writer.partial_path()))) return 2;
            auto map = tests::synthetic_map(a, 64, 1);
            map.rule.bias_length = 1 << 20;
            map.rule.distance_bias.assign(std::size_t{4} << 20U, 0.0F);
            writer.write_map(0, 0, map.query, map.key, map.row_constant, map.rule, 0);
            return 4;
        } catch (const Error& error) {
            return error.code() == ErrorCode::io && error.found().find("size limit") != std::string::npos ? 0 : 5;
        }
    });
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(names_in(folder.path()).empty());
}

TEST_CASE("An analysis larger than the disk is refused before anything is written", "[store]") {
    tests::SyntheticAnalysis a;
    a.lengths = {200000};
    a.layers = a.heads = 100;
    a.record.attention = true;
    const test::TemporaryFolder folder;
    auto header = tests::synthetic_header(a);
    try {
        store::AnalysisWriter writer(folder / "a.headscope.h5", header);
        FAIL("1.6 petabytes were promised");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::io);
        CHECK(error.expected().find("free space") != std::string::npos);
    }
    CHECK(names_in(folder.path()).empty());
}

TEST_CASE("Outputs that cannot be are refused and stay as they were", "[store]") {
    const test::TemporaryFolder folder;
    const auto header = tests::synthetic_header({});
    const auto refused = [&](const fs::path& path, const std::vector<fs::path>& inputs = {}) {
        CHECK_THROWS_AS(store::AnalysisWriter(path, header, inputs), Error);
    };
    refused(folder.path());
    refused("/dev/null");
    refused(folder / "absent/a.headscope.h5");
    const auto input = folder / "input.txt";
    std::ofstream(input) << "text";
    refused(input, {input});
    CHECK(fs::file_size(input) == 4);
    CHECK(names_in(folder.path()).size() == 1);
}

TEST_CASE("Statistics of other sizes than the site's are refused", "[store]") {
    tests::SyntheticAnalysis a, other;
    other.heads = 6;
    const test::TemporaryFolder folder;
    store::AnalysisWriter writer(folder / "a.headscope.h5", tests::synthetic_header(a));
    CHECK_THROWS_AS(writer.write_site(0, 0, tests::synthetic_statistics(other, 24, 0, 1), 0), Error);
    CHECK_THROWS_AS(writer.write_site(0, 0, tests::synthetic_statistics(a, 23, 0, 1), 0), Error);
    CHECK_THROWS_AS(writer.write_site(0, 0, tests::synthetic_statistics(a, 24, 0, 1), 1), Error);
    CHECK_THROWS_AS(writer.write_site(1, 0, tests::synthetic_statistics(a, 24, 0, 1), 0), Error);
    CHECK_THROWS_AS(writer.write_logits(0, 0, std::vector<float>(32)), Error);  // not recorded
    CHECK_THROWS_AS(writer.write_loss(0, std::vector<float>(25)), Error);
}

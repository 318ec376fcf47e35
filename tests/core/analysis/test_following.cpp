// SPDX-License-Identifier: GPL-3.0-or-later
// A followed run: announced values can be read from the partial file at once.
#include <catch2/catch.hpp>

#include <cmath>
#include <set>
#include <thread>
#include <utility>

#include "core/analysis/request.h"
#include "core/base/error.h"
#include "core/store/analysis/analysis_file.h"
#include "tests/core/analysis/fake_model.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
namespace fs = std::filesystem;

namespace {

store::SequenceTokens sequence(std::int64_t length) {
    store::SequenceTokens tokens;
    for (std::int64_t i = 0; i < length; ++i) tokens.ids.push_back(static_cast<std::int32_t>((3 * i + i * i) % 40));
    return tokens;
}

void run(tests::FakeModel& model, const analysis::AnalysisRequest& request, const fs::path& path,
         const Cancellation& cancellation = {}) {
    NoProgress progress;
    analysis::run(model, request, path, {}, progress, cancellation);
}

/// Does it on another thread, as a window's reader does.
template <class Body>
void elsewhere(Body body) {
    std::thread thread(body);
    thread.join();
}

}  // namespace

TEST_CASE("A follower reads each site and loss from the partial file when it is announced", "[analysis][follow]") {
    tests::FakeModel model({});
    const test::TemporaryFolder folder;
    const auto path = folder / "a.headscope.h5";
    analysis::AnalysisRequest request;
    for (const std::int64_t length : {7, 12, 7}) request.sequences.push_back(sequence(length));
    request.record.maps = request.record.states = true;
    request.layers = {0, 2};

    std::shared_ptr<store::AnalysisFile> file;
    std::set<std::pair<std::int64_t, std::int64_t>> sites;
    std::set<std::int64_t> losses;
    request.created = [&](const fs::path& partial) {
        CHECK(partial == folder / "a.headscope.h5.partial");
        elsewhere([&] {
            file = store::AnalysisFile::open(partial);
            file->check();
        });
        CHECK_FALSE(file->complete());
    };
    request.site_done = [&](std::int64_t s, std::int64_t site) {
        CHECK(sites.insert({s, site}).second);
        bool good = false;
        elsewhere([&] {
            const auto sink = file->indicator("sink").data;
            good = file->site_done(s, site) && file->map(s, site).has_value() &&
                   std::isfinite(sink[static_cast<std::size_t>((s * 3 + site) * 4)]) &&
                   file->state("k_norm", s, site)->data[0] > 0;
        });
        CHECK(good);
    };
    request.loss_done = [&](std::int64_t s) {
        CHECK(losses.insert(s).second);
        bool good = false;
        elsewhere([&] { good = std::isfinite(file->loss(s).data[0]); });
        CHECK(good);
    };
    run(model, request, path);
    CHECK(sites.size() == 6);
    CHECK_FALSE(sites.contains({0, 1}));
    CHECK(losses == std::set<std::int64_t>{0, 1, 2});
    CHECK(file->site_done(2, 2));  // the same object, after the file got its name
    CHECK(file->complete());
    CHECK(folder.names() == std::vector<std::string>{"a.headscope.h5"});
}

TEST_CASE("A stopped or failed run leaves its partial file on request", "[analysis][follow]") {
    const bool keep = GENERATE(true, false), stops = GENERATE(true, false);
    tests::FakeModel model({});
    const test::TemporaryFolder folder;
    Cancellation cancellation;
    analysis::AnalysisRequest request;
    request.sequences = {sequence(9)};
    request.keep_partial_on_stop = keep;
    model.before_layer = [&](std::int64_t layer) {
        if (layer < 2) return;
        if (!stops) throw std::bad_alloc();
        cancellation.request();
    };
    if (stops)
        CHECK_THROWS_AS(run(model, request, folder / "a.headscope.h5", cancellation), Stopped);
    else
        CHECK_THROWS_AS(run(model, request, folder / "a.headscope.h5", cancellation), Error);
    if (!keep) {
        CHECK(folder.names().empty());
        return;
    }
    REQUIRE(folder.names() == std::vector<std::string>{"a.headscope.h5.partial"});
    const auto file = store::AnalysisFile::open(folder / "a.headscope.h5.partial");
    CHECK_FALSE(file->complete());
    CHECK((file->site_done(0, 1) && !file->site_done(0, 2)));
    // The next run is not disturbed, whatever it requests.
    model.before_layer = nullptr;
    run(model, request, folder / "a.headscope.h5");
    CHECK(folder.names() == std::vector<std::string>{"a.headscope.h5", "a.headscope.h5.partial"});
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/cost/latency.h"
#include "core/model/load/presets.h"
#include "core/model/trainable.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;

namespace {

/// A small stack, and who owns it.
std::shared_ptr<model::Model> stack(const std::string& mixer, std::int64_t positions = 512) {
    nlohmann::json config = model::preset_json("nano-100k");
    config["layers"] = std::vector<std::string>{mixer, mixer};
    config["num_hidden_layers"] = 2;
    config["max_position_embeddings"] = positions;
    std::shared_ptr<model::Trainable> owner = model::Trainable::create(config.dump(), 1, at::kFloat);
    return {owner, &owner->model()};
}

cost::LatencyOptions quick() {
    cost::LatencyOptions options;
    options.lengths = {256, 16, 256};
    options.warm_ups = 1;
    options.least_runs = 2;
    options.most_runs = 3;
    options.decode_steps = 3;
    return options;
}

}  // namespace

TEST_CASE("Percentiles lie between ranks, and the spread is half the interquartile range", "[cost][latency]") {
    const auto found = cost::percentiles({5, 1, 3, 2, 4});
    CHECK(found.median == 3);
    CHECK(found.p10 == Approx(1.4));
    CHECK(found.p90 == Approx(4.6));
    CHECK(cost::percentiles({7}).p90 == 7);
    CHECK(std::isnan(cost::percentiles({}).median));
    CHECK(cost::relative_spread({5, 1, 3, 2, 4}) == Approx((4.0 - 2.0) / 2 / 3));
    CHECK(cost::relative_spread({2, 2, 2}) == 0);
}

TEST_CASE("Models take turns at each length, from the shortest on", "[cost][latency]") {
    const std::vector<std::shared_ptr<model::Model>> models{stack("standard"), stack("mlp")};
    NoProgress progress;
    const auto latency = cost::measure_latency(models, quick(), progress);
    REQUIRE(latency.rows.size() == 4);
    CHECK(latency.left_out.empty());
    for (std::size_t i = 0; i < 4; ++i) {
        const auto& row = latency.rows[i];
        CHECK(row.model == static_cast<std::int64_t>(i % 2));
        CHECK(row.length == (i < 2 ? 16 : 256));
        CHECK(row.runs >= 2);
        CHECK(row.runs <= 3);
        CHECK(row.prefill.median > 0);
        CHECK(row.prefill.p10 <= row.prefill.median);
        CHECK(row.prefill.median <= row.prefill.p90);
        CHECK(row.decode.median > 0);
        CHECK(row.peak_bytes > 0);
    }
    // The cache of attention grows with the text.
    CHECK(latency.rows[2].cache_bytes > latency.rows[0].cache_bytes);
}

TEST_CASE("A run ends where its time is over, and never before its least repeats", "[cost][latency]") {
    NoProgress progress;
    auto options = quick();
    options.lengths = {16};
    options.seconds = 0;
    options.least_runs = 4;
    options.most_runs = 30;
    const std::vector<std::shared_ptr<model::Model>> models{stack("standard")};
    CHECK(cost::measure_latency(models, options, progress).rows.at(0).runs == 4);
    options.seconds = 1e9;
    options.spread = 0;
    options.most_runs = 6;
    CHECK(cost::measure_latency(models, options, progress).rows.at(0).runs == 6);
}

TEST_CASE("Cancelling ends the timing", "[cost][latency]") {
    Cancellation cancellation;
    cancellation.request();
    auto options = quick();
    options.cancellation = &cancellation;
    NoProgress progress;
    const std::vector<std::shared_ptr<model::Model>> models{stack("standard")};
    CHECK_THROWS_AS(cost::measure_latency(models, options, progress), Stopped);
}

// SPDX-License-Identifier: GPL-3.0-or-later
// What is streamed of implicit matrices against the same of the matrix that is stored with it.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/where.h>
#include <ATen/ops/xlogy.h>
#include <ATen/ops/zeros.h>

#include "core/mixers/types/type.h"
#include "tests/core/model/native_model.h"
#include "tests/core/model/recording_probe.h"

using namespace headscope;

TEST_CASE("Implicit statistics are those of the stored matrix at every decay", "[native][probe]") {
    // Decays of a token from e^-0.1 to e^-60, by the biases that they come out of; RetNet's and Lightning's are fixed.
    std::vector<std::pair<std::string, nlohmann::json>> cases;
    for (const std::string& mixer : mixers::names_where([](const auto&) { return true; })) cases.push_back({mixer, {}});
    for (const char* inside : {"softmax", "linear", "both"})
        cases.push_back({"natsl", {{"natsl", {{"inside_chunk", inside}, {"chunk_size", 16}}}}});
    std::size_t measured = 0;
    for (const auto& [mixer, options] : cases) {
        const mixers::MixerType& type = *mixers::find_type(mixer);
        if (!type.in_decoders) continue;
        const nlohmann::json config =
            test::native_config({mixer}, options.is_null() ? options : nlohmann::json{{"mixers", options}});
        const auto trainable = model::Trainable::create(config.dump(), 1, at::kFloat);
        model::Model& model = trainable->model();
        const auto& sites = model.sites();
        if (std::none_of(sites.begin(), sites.end(), [](const Site& site) { return site.has_implicit; })) continue;
        for (const double decay : {0.1, 4.0, 30.0, 60.0}) {
            INFO(mixer << " " << config.value("mixers", nlohmann::json()).dump() << ", e^-" << decay);
            for (const model::Parameter& one : trainable->parameters()) {
                at::Tensor value = one.value.detach();
                if (one.name.ends_with("dt_bias")) value.fill_(std::log(std::expm1(std::min(decay, 30.0))));
                if (one.name.ends_with("A_log")) value.fill_(std::log(std::max(1.0, decay / 30.0)));
                if (one.name.ends_with("gk_proj.1.bias")) value.fill_(-16 * decay);
            }
            test::RecordingProbe probe(true, {"nothing"});
            model::ForwardOptions forward;
            forward.probe = &probe;
            model.forward(test::some_tokens(2, 70), forward);
            for (const auto& [site, weights, statistics, deviation] : probe.implicits) {
                ++measured;
                const at::Tensor sizes = weights.to(at::kDouble).abs(), sums = sizes.sum(3, true);
                const at::Tensor shares = at::where(sums >= 0x1p-126, sizes / sums, at::zeros({}, at::kDouble));
                const at::Tensor entropy = -at::xlogy(shares, shares).sum({2, 3}).flatten();
                const at::Tensor spread = shares.square().sum({2, 3}).sqrt().flatten();
                REQUIRE(static_cast<std::int64_t>(statistics.concentration.size()) == spread.numel());
                for (std::int64_t head = 0; head < spread.numel(); ++head) {
                    const auto place = static_cast<std::size_t>(head);
                    CHECK(statistics.concentration[place] == Approx(spread[head].item<double>()).epsilon(1e-5));
                    CHECK(statistics.entropy[place] == Approx(entropy[head].item<double>()).epsilon(1e-4).margin(1e-3));
                }
            }
        }
    }
    CHECK(measured >= 4 * 9);
}

// SPDX-License-Identifier: GPL-3.0-or-later
// Interventions against plain computations on what probes announce, on tiny models of several families.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/model/edits/intervention.h"
#include "core/model/towers/cache.h"
#include "core/model/training_forward.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/edits/intervention_case.h"
#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using namespace headscope::test::edits;
using model::Action;
using model::Intervention;
using model::Point;
using model::PointKey;
using test::IsError;
using test::largest_difference;
using test::largest_value;
using test::RecordingProbe;

namespace {

/// A vector added at a point of a layer.
Intervention added(Point point, std::int64_t layer, const at::Tensor& vector) {
    Intervention one = edit(point, Action::add, {layer});
    one.value = vector;
    return one;
}

}  // namespace

TEST_CASE("Values of the same run in place of all of them change nothing, at every point of every family",
          "[model][interventions]") {
    for (const std::string& name : kFamilies) {
        DYNAMIC_SECTION(name) {
            const Case one = one_text(name);
            const auto& config = one.model->config();
            const at::Tensor plain = run(one, {});
            for (std::int64_t p = 0; p < model::kPoints; ++p) {
                const Point point = static_cast<Point>(p);
                const auto places = model::places_of(point, config, one.model->sites());
                if (places.empty()) continue;
                INFO(model::name(point));
                model::PointRecorder recorder(std::set<PointKey>(places.begin(), places.end()));
                model::ForwardOptions options;
                options.beyond_positions = true;
                options.editor = &recorder;
                CHECK(close(one.model->forward(one.batch, options), plain));
                CHECK(recorder.values.size() == places.size());
                Intervention same = edit(point, Action::run);
                same.values = recorder.values;
                CHECK(close(run(one, {same}), plain));
                if (point == Point::scores) continue;
                Intervention other = edit(point, Action::add);  // not a factor, which norms would take out
                for (const auto& [key, value] : recorder.values) other.values[key] = value * numbers(value.sizes());
                CHECK_FALSE(close(run(one, {other}), plain));
            }
        }
    }
}

TEST_CASE("Positions that no text has are refused", "[model][interventions]") {
    const std::vector<std::int64_t> lengths{3, 10};
    Intervention one = edit(Point::hidden, Action::zero);
    const auto refused = [&](const std::string& part) {
        CHECK_THROWS_MATCHES(model::check_positions(std::vector{one}, lengths), Error, IsError(ErrorCode::usage, part));
    };
    for (const auto& [first, last] : {std::pair(9, 9), std::pair(-10, -10), std::pair(5, 99), std::pair(-99, -10)}) {
        one.positions = {{99, 99}, {first, last}};
        model::check_positions(std::vector{one}, lengths);
    }
    one.positions = {{10, 12}};
    model::check_positions(std::vector{one}, {});
    refused("[intervention 1] expected positions of a text, of which the longest has 10 tokens; found 10-12");
    one.positions = {{-11, -11}};
    refused("found -11");
    one = edit(Point::scores, Action::forbid);
    one.queries = {{9, 9}};
    model::check_positions(std::vector{one}, lengths);
    one.keys = {{10, 10}};
    refused("expected keys of a text");
    one.queries = {{10, 10}};
    refused("expected queries of a text");
}

TEST_CASE("Points lie where their names say", "[model][interventions]") {
    for (const std::string name : {"llama", "gpt2", "gemma2"}) {
        const Case one = one_text(name);
        const at::Tensor vector = numbers({one.model->config().hidden});
        RecordingProbe plain(false), off(false), at_attention(false), middle(false), entering(false);
        run(one, {}, &plain);
        run(one,
            {edit(Point::attention_output, Action::zero, {1}), edit(Point::feed_forward_output, Action::zero, {1})},
            &off);
        CHECK(close(off.at("hidden", 1), plain.at("hidden", 0)));
        run(one, {added(Point::attention_output, 0, vector)}, &at_attention);
        run(one, {added(Point::residual_middle, 0, vector)}, &middle);
        run(one, {added(Point::feed_forward_input, 0, vector)}, &entering);
        CHECK(close(middle.at("hidden", 0), at_attention.at("hidden", 0)));
        CHECK(close(middle.at("feed_forward_output", 0), entering.at("feed_forward_output", 0)));
        CHECK(close(middle.at("hidden", 0), entering.at("hidden", 0) + vector));
        RecordingProbe embedded(false), before(false);
        Intervention first = edit(Point::embedding, Action::add);
        first.value = vector;
        run(one, {first}, &embedded);
        run(one, {added(Point::residual_before, 0, vector)}, &before);
        CHECK(close(embedded.at("hidden", 0), before.at("hidden", 0)));
    }
}

TEST_CASE("Edited weights multiply the values, and forbidden edges have none", "[model][interventions]") {
    for (const std::string name : {"llama", "gpt-oss", "hybrid-qwen3-next"}) {
        const Case one = one_text(name);
        const auto places = model::places_of(Point::pattern, one.model->config(), one.model->sites());
        const std::int64_t layer = places.back().layer, length = one.batch.ids.size(1);
        const auto by_hand = [&](const RecordingProbe& probe) {
            const at::Tensor pattern = probe.at("pattern_edited", layer), value = probe.at("value", layer);
            return pattern.matmul(value.repeat_interleave(pattern.size(1) / value.size(1), 1));
        };
        RecordingProbe uniform(true);
        run(one, {edit(Point::pattern, Action::uniform, {layer})}, &uniform);
        const at::Tensor seen = at::ones({length, length}).tril();
        CHECK(close(uniform.at("pattern_edited", layer),
                    (seen / seen.sum(1, true)).expand_as(uniform.at("pattern_edited", layer))));
        CHECK(close(uniform.at("head_output", layer), by_hand(uniform)));

        Intervention forbid = edit(Point::scores, Action::forbid, {layer});
        forbid.heads = {1};
        forbid.queries = {{2, 3}};
        forbid.keys = {{0, 1}, {3, 3}};
        RecordingProbe hidden(false);
        run(one, {forbid, edit(Point::pattern, Action::zero, {layer})}, &hidden);
        const at::Tensor scores = hidden.at("scores_edited", layer);
        CHECK((scores.select(1, 1).narrow(1, 2, 2).narrow(2, 0, 2) < -1e30).all().item<bool>());
        CHECK(scores[0][1][3][3].item<double>() < -1e30);
        CHECK(scores[0][1][3][2].item<double>() > -1e30);
        CHECK(scores[0][0][2][0].item<double>() > -1e30);
        CHECK(hidden.at("head_output", layer).abs().max().item<double>() == 0);

        // A row without an edge gives zeros, and two lists of edges unite.
        Intervention rest = forbid;
        rest.queries = {{2, 2}};
        rest.keys = {{2, 2}};
        RecordingProbe empty(false);
        run(one, {forbid, rest}, &empty);
        CHECK(empty.at("head_output", layer).select(1, 1).select(1, 2).abs().max().item<double>() == 0);
        CHECK(empty.at("head_output", layer).select(1, 1).select(1, 3).abs().max().item<double>() > 0);
    }
}

TEST_CASE("Each action does what it says, at its heads and positions alone", "[model][interventions]") {
    const Case one = one_text("llama");
    RecordingProbe plain(false);
    run(one, {}, &plain);
    const at::Tensor before = plain.at("head_output", 1);
    const std::int64_t length = before.size(2), size = before.size(3);
    const auto after = [&](Intervention what) {
        what.heads = {1, 2};
        what.positions = {{1, 2}, {-1, -1}};
        RecordingProbe probe(false);
        run(one, {what}, &probe);
        CHECK(probe.at("head_output", 1).equal(before));
        return probe.at("head_output_edited", 1);
    };
    const auto expected = [&](const std::function<at::Tensor(std::int64_t head, std::int64_t row)>& of) {
        at::Tensor result = before.clone();
        for (const std::int64_t head : {1, 2})
            for (const std::int64_t row : {std::int64_t{1}, std::int64_t{2}, length - 1})
                result.select(1, head).select(1, row).copy_(of(head, row));
        return result;
    };
    const auto own = [&](std::int64_t head, std::int64_t row) { return before.select(1, head).select(1, row); };
    const auto point = [](Action action) { return edit(Point::head_output, action, {1}); };
    CHECK(close(after(point(Action::zero)),
                expected([&](auto head, auto row) { return at::zeros_like(own(head, row)); })));
    CHECK(close(after(point(Action::mean)), expected([&](auto head, auto) { return before.select(1, head).mean(1); })));
    Intervention add = point(Action::add);
    add.factor = -1.5;
    add.value = numbers({size});
    CHECK(close(after(add), expected([&](auto head, auto row) { return own(head, row) - 1.5 * add.value; })));
    Intervention set = point(Action::set);
    set.value = numbers({4, size});
    CHECK(close(after(set), expected([&](auto head, auto) { return set.value.select(0, head); })));
    Intervention other = point(Action::run);
    other.value = numbers({1, 4, length + 1, size});
    other.shift = 1;
    CHECK(close(after(other),
                expected([&](auto head, auto row) { return other.value.select(1, head).select(1, row + 1); })));

    // Later edits see earlier ones; a mean does not.
    Intervention mean = point(Action::mean);
    RecordingProbe twice(false);
    run(one, {set, mean}, &twice);
    CHECK(close(twice.at("head_output_edited", 1), before.mean(2, true).expand_as(before)));
    run(one, {set, add}, &twice);
    CHECK(close(twice.at("head_output_edited", 1),
                (set.value.unsqueeze(1) - 1.5 * add.value).unsqueeze(0).expand_as(before)));
}

TEST_CASE("Padding is neither edited nor averaged", "[model][interventions]") {
    Case one{test::golden_checkpoint("llama").build(), test::golden_batch("llama")};
    one.batch.lengths = {one.batch.ids.size(1), 4};
    RecordingProbe plain(false), mean(false);
    run(one, {}, &plain);
    Intervention what = edit(Point::hidden, Action::mean, {0});
    what.positions = {{-2, -1}};
    run(one, {what}, &mean);
    const at::Tensor before = plain.at("hidden", 0)[1], after = mean.at("hidden_edited", 0)[1];
    CHECK(close(after.narrow(0, 2, 2), before.narrow(0, 0, 4).mean(0, true).expand({2, before.size(1)})));
    CHECK(after.narrow(0, 0, 2).equal(before.narrow(0, 0, 2)));
    CHECK(after.narrow(0, 4, 1).equal(before.narrow(0, 4, 1)));
}

TEST_CASE("Two passes with a cache equal one pass", "[model][interventions]") {
    for (const std::string name : {"llama", "gpt2", "gemma2", "deepseek-v3", "hybrid-qwen3-next", "hybrid-falcon-h1"}) {
        INFO(name);
        const Case one = one_text(name);
        const auto& config = one.model->config();
        std::vector<Intervention> list{edit(Point::hidden, Action::add, {0}), edit(Point::head_output, Action::zero)};
        list[0].value = numbers({1, one.batch.ids.size(1), config.hidden});
        list[1].heads = {1};
        list[1].positions = {{1, 1}, {5, 6}};
        if (name != "deepseek-v3") {
            list.push_back(edit(Point::value, Action::zero));
            list.back().positions = {{2, 5}};
        }
        list.push_back(edit(Point::scores, Action::forbid));
        list.back().queries = {{3, 6}};
        list.back().keys = {{1, 4}};
        list.push_back(edit(Point::pattern, Action::uniform));
        list.back().positions = {{4, 7}};
        list.back().heads = {0};
        const at::Tensor whole = run(one, list);
        model::Interventions edits(list, config, one.model->sites());
        const auto cache = one.model->new_cache();
        model::ForwardOptions options;
        options.cache = cache.get();
        options.editor = &edits;
        std::vector<at::Tensor> pieces;
        const std::int64_t length = one.batch.ids.size(1);
        for (const auto& [first, count] : {std::pair<std::int64_t, std::int64_t>{0, 4}, {4, length - 4}})
            pieces.push_back(one.model->forward({one.batch.ids.narrow(1, first, count), {}, {}}, options));
        CHECK(largest_difference(at::cat(pieces, 1), whole) < 1e-5 * largest_value(whole) + 1e-5);
    }
}

namespace {

/// Adds zeros that want a gradient.
class Tap final : public model::Editor {
public:
    explicit Tap(PointKey key) : key_(key) {}
    bool edits(const PointKey& key) const override { return key == key_; }
    at::Tensor edit(const model::EditPlace&, const at::Tensor& value) override {
        leaf = at::zeros_like(value).requires_grad_(true);
        return value + leaf;
    }
    at::Tensor leaf;

private:
    PointKey key_;
};

}  // namespace

TEST_CASE("Edits run under autograd, and gradients agree with differences", "[model][interventions]") {
    for (const std::string name : {"llama", "hybrid-qwen3-next"}) {
        const Case one = one_text(name);
        const auto& sites = one.model->sites();
        for (const Point point : {Point::hidden, Point::head_output, Point::pattern, Point::key}) {
            INFO(name << " " << model::name(point));
            const PointKey key = model::places_of(point, one.model->config(), sites).front();
            Intervention zero = edit(Point::attention_output, Action::zero);
            zero.positions = {{1, 1}};
            model::Interventions fixed({zero}, one.model->config(), sites);
            Tap tap(key);
            model::EditorChain both({&tap, &fixed});
            const model::TrainingForward training;
            model::ForwardOptions options;
            options.training = &training;
            options.editor = &both;
            at::Tensor gradient;
            {
                const at::AutoGradMode recording(true);
                const at::Tensor result = one.model->forward(one.batch, options);
                const at::Tensor weights = numbers(result.sizes());
                gradient = torch::autograd::grad({(result * weights).sum()}, {tap.leaf})[0];
            }
            REQUIRE(gradient.abs().max().item<double>() > 0);
            const double norm = gradient.norm().item<double>();
            const at::Tensor direction = gradient / norm;
            Intervention step = edit(point, Action::add, {key.layer});
            if (key.site >= 0) step.attention = "self";
            if (key.site >= 0 && !sites[static_cast<std::size_t>(key.site)].branch.empty())
                step.attention = sites[static_cast<std::size_t>(key.site)].branch;
            step.value = direction;
            const double small = std::clamp(0.05 / norm, 1e-4, 0.02);
            const auto moved = [&](double factor) {
                step.factor = factor;
                const at::Tensor result = run(one, {step, zero});
                return (result.to(at::kDouble) * numbers(result.sizes()).to(at::kDouble)).sum().item<double>();
            };
            const double slope = (moved(small) - moved(-small)) / (2 * small);
            CHECK(std::abs(slope - norm) < 0.02 * norm);
        }
    }
}

TEST_CASE("Values have as many heads as their places", "[model][interventions]") {
    for (const std::string& name : kFamilies) {
        INFO(name);
        const Case one = one_text(name);
        const auto& sites = one.model->sites();
        std::set<PointKey> places;
        for (const Point point : {Point::query, Point::key, Point::value, Point::pattern, Point::head_output})
            for (const PointKey& key : model::places_of(point, one.model->config(), sites)) places.insert(key);
        model::PointRecorder recorder(places);
        model::ForwardOptions options;
        options.beyond_positions = true;
        options.editor = &recorder;
        one.model->forward(one.batch, options);
        for (const auto& [key, value] : recorder.values) {
            INFO(model::name(key.point) << " of site " << key.site);
            CHECK(value.size(1) == model::heads_at(key, sites));
        }
    }
}

TEST_CASE("What a model does not have is refused by name", "[model][interventions]") {
    const Case llama = one_text("llama"), hybrid = one_text("hybrid-qwen3-next"), neox = one_text("neox");
    const auto refused = [](const Case& one, const Intervention& what, const std::string& part) {
        CHECK_THROWS_MATCHES(run(one, {what}), Error, IsError(ErrorCode::usage, part));
    };
    refused(hybrid, edit(Point::pattern, Action::zero, {0}), "layer 0 (gated_deltanet) has no pattern");
    refused(neox, edit(Point::residual_middle, Action::zero, {0}), "layer 0 (standard) has no residual_middle");
    refused(neox, edit(Point::feed_forward_input, Action::zero), "no layer has feed_forward_input");
    refused(llama, edit(Point::hidden, Action::zero, {2}), "expected a layer from 0 to 1; found 2");
    Intervention heads = edit(Point::key, Action::zero, {1});
    heads.heads = {2};
    refused(llama, heads, "expected a head of layer 1 from 0 to 1; found 2");
    heads.point = Point::hidden;
    refused(llama, heads, "no heads at hidden");
    refused(llama, edit(Point::hidden, Action::forbid), "forbid at scores");
    refused(llama, edit(Point::hidden, Action::uniform), "uniform at pattern");
    refused(llama, edit(Point::hidden, Action::set), "values to set");
    refused(llama, edit(Point::embedding, Action::zero, {0}), "no layer at embedding");
    Intervention cross = edit(Point::pattern, Action::zero, {0});
    cross.attention = "cross";
    refused(llama, cross, "an attention of layer 0; found cross");
    Intervention reference = edit(Point::pattern, Action::reference);
    reference.value = numbers({4});
    refused(llama, reference, "reference at a value");

    const auto cache = llama.model->new_cache();
    Intervention last = edit(Point::hidden, Action::zero);
    last.positions = {{-1, -1}};
    for (const Intervention& what : {edit(Point::hidden, Action::mean), last}) {
        model::Interventions edits({what}, llama.model->config(), llama.model->sites());
        model::ForwardOptions options;
        options.cache = cache.get();
        options.editor = &edits;
        CHECK_THROWS_MATCHES(llama.model->forward(llama.batch, options), Error,
                             IsError(ErrorCode::usage, "where a text comes in pieces"));
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
// Interventions against plain computations on what probes announce, on tiny models of several families.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/mixers/mixer.h"
#include "core/model/edits/intervention.h"
#include "core/model/towers/cache.h"
#include "core/model/towers/stack.h"
#include "core/model/training_forward.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using model::Action;
using model::Intervention;
using model::Point;
using model::PointKey;
using test::IsError;
using test::largest_difference;
using test::largest_value;
using test::RecordingProbe;

namespace {

struct Case {
    std::shared_ptr<model::Model> model;
    model::Batch batch;
};

/// The first text of a golden model, without padding.
Case one_text(const std::string& name) {
    Case one{test::golden_checkpoint(name).build(), test::golden_batch(name)};
    const std::int64_t length = one.batch.lengths.empty() ? one.batch.ids.size(1) : one.batch.lengths[0];
    one.batch.ids = one.batch.ids.narrow(0, 0, 1).narrow(1, 0, length);
    one.batch.lengths.clear();
    if (one.batch.token_types.defined())
        one.batch.token_types = one.batch.token_types.narrow(0, 0, 1).narrow(1, 0, length);
    if (one.batch.target.defined()) {
        const std::int64_t own =
            one.batch.target_lengths.empty() ? one.batch.target.size(1) : one.batch.target_lengths[0];
        one.batch.target = one.batch.target.narrow(0, 0, 1).narrow(1, 0, own);
        one.batch.target_lengths.clear();
    }
    return one;
}

at::Tensor run(const Case& one, std::vector<Intervention> list, model::Probe* probe = nullptr) {
    model::Interventions edits(std::move(list), one.model->config(), one.model->sites());
    model::ForwardOptions options;
    options.beyond_positions = true;
    options.probe = probe;
    options.editor = &edits;
    return one.model->forward(one.batch, options);
}

Intervention edit(Point point, Action action, std::vector<std::int64_t> layers = {}) {
    Intervention one;
    one.point = point;
    one.action = action;
    one.layers = std::move(layers);
    return one;
}

/// A vector added at a point of a layer.
Intervention added(Point point, std::int64_t layer, const at::Tensor& vector) {
    Intervention one = edit(point, Action::add, {layer});
    one.value = vector;
    return one;
}

bool close(const at::Tensor& a, const at::Tensor& b) {
    return largest_difference(a, b) < 4 * test::kFloatError * (largest_value(b) + 1e-30);
}

/// Numbers from -1 to 1 that differ.
at::Tensor numbers(at::IntArrayRef shape) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    return (at::arange(count, at::kFloat) * 0.7).sin().view(shape);
}

const std::vector<std::string> kFamilies{"llama",
                                         "gpt2",
                                         "gemma2",
                                         "neox",
                                         "deepseek-v3",
                                         "gpt-oss",
                                         "bert",
                                         "t5",
                                         "hybrid-qwen3-next",
                                         "hybrid-falcon-h1",
                                         "hybrid-diffllama",
                                         "native-natsl",
                                         "native-approximate",
                                         "bloom",
                                         "olmo2",
                                         "hybrid-jamba"};

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

TEST_CASE("A pass for one position gives that row of the whole pass, edited or not", "[model][interventions]") {
    for (const std::string& name : kFamilies) {
        DYNAMIC_SECTION(name) {
            const Case one = one_text(name);
            const auto& config = one.model->config();
            std::vector<std::vector<Intervention>> lists{{}};
            for (const Point point : {Point::query, Point::key, Point::value, Point::pattern, Point::head_output,
                                      Point::mixer_output, Point::attention_output, Point::feed_forward_input,
                                      Point::feed_forward_output, Point::hidden, Point::final_norm}) {
                const auto places = model::places_of(point, config, one.model->sites());
                if (places.empty()) continue;
                Intervention zero = edit(point, Action::zero);
                if (places.back().layer >= 0) zero.layers = {places.back().layer};
                zero.positions = {{1, -1}};
                lists.push_back({zero});
            }
            for (const std::vector<Intervention>& list : lists) {
                const at::Tensor whole = run(one, list);
                for (const std::int64_t position : {std::int64_t{0}, whole.size(1) - 1}) {
                    model::Interventions edits(list, config, one.model->sites());
                    model::ForwardOptions options;
                    options.beyond_positions = true;
                    options.editor = &edits;
                    options.only_position = position;
                    const at::Tensor row = one.model->forward(one.batch, options);
                    REQUIRE(row.sizes() == whole.narrow(1, position, 1).sizes());
                    CHECK(close(row, whole.narrow(1, position, 1)));
                }
            }
        }
    }
}

TEST_CASE("Softmax attention returns the row of one position alone", "[model][interventions]") {
    for (const std::string name : {"gpt2", "llama", "gemma2", "neox", "gpt-oss", "olmo2", "bloom"}) {
        const Case one = one_text(name);
        const auto& tower = dynamic_cast<const model::Stack&>(*one.model).tower();
        const mixers::Mixer& mixer = *tower.layers().back()->mixer;
        REQUIRE(mixer.returns_one_position());
        const std::int64_t layer = one.model->config().layers - 1;
        mixers::StackContext context;
        context.layer = LayerIndex(layer);
        context.site = SiteIndex(layer);
        context.sites = &one.model->sites();
        context.rotary = tower.rotary_of(layer);
        for (const std::int64_t length : {1, 9, 65}) {
            const at::Tensor x = numbers({2, length, one.model->config().hidden});
            model::RotaryTable table;
            if (context.rotary) {
                table = context.rotary->table(0, length, at::kFloat);
                context.rotation = &table;
            }
            context.only_position = -1;
            const at::Tensor whole = mixer.forward(x, context, nullptr);
            REQUIRE(whole.size(1) == length);
            for (const std::int64_t position : {std::int64_t{0}, length / 2, length - 1}) {
                INFO(name << ", position " << position << " of " << length);
                context.only_position = position;
                const at::Tensor row = mixer.forward(x, context, nullptr);
                REQUIRE(row.sizes() == whole.narrow(1, position, 1).sizes());
                CHECK(close(row, whole.narrow(1, position, 1)));
            }
        }
    }
}

TEST_CASE("A pass for one position refuses a probe, a cache and a position that the text lacks",
          "[model][interventions]") {
    const Case one = one_text("llama");
    const auto refused = [&](const model::ForwardOptions& options, const char* part) {
        CHECK_THROWS_MATCHES(one.model->forward(one.batch, options), Error, IsError(ErrorCode::usage, part));
    };
    model::ForwardOptions options;
    options.only_position = one.batch.ids.size(1);
    refused(options, "expected a position below");
    options.only_position = 0;
    RecordingProbe probe(false, {"hidden"});
    options.probe = &probe;
    refused(options, "expected all positions");
    options.probe = nullptr;
    const auto cache = one.model->new_cache();
    options.cache = cache.get();
    refused(options, "expected all positions");
}

namespace {

/// Stores the heads of one place, and counts the queries that its layer computes.
class StoredHeads final : public model::Editor {
public:
    StoredHeads(PointKey key, at::Tensor heads) : key_(key), heads_(std::move(heads)) {}
    bool edits(const PointKey& key) const override { return key.point == Point::query && key.layer == key_.layer; }
    at::Tensor edit(const model::EditPlace&, const at::Tensor& value) override {
        ++queries;
        return value;
    }
    at::Tensor stored_heads(const PointKey& key) const override { return key == key_ ? heads_ : at::Tensor(); }
    int queries = 0;

private:
    PointKey key_;
    at::Tensor heads_;
};

/// Zeroes one head of each row of a batch, -1: none, and names other ones or none.
class ZeroedHeads final : public model::Editor {
public:
    ZeroedHeads(PointKey key, std::vector<std::int64_t> heads, std::vector<std::int64_t> named)
        : key_(key), heads_(std::move(heads)), named_(std::move(named)) {}
    bool edits(const PointKey& key) const override { return key == key_; }
    at::Tensor edit(const model::EditPlace&, const at::Tensor& value) override {
        at::Tensor changed = value.clone();
        for (std::int64_t row = 0; row < value.size(0); ++row)
            if (const std::int64_t head = heads_.at(static_cast<std::size_t>(row)); head >= 0)
                changed[row][head].zero_();
        return changed;
    }
    std::vector<std::int64_t> changed_heads(const PointKey&) const override { return named_; }

private:
    PointKey key_;
    std::vector<std::int64_t> heads_, named_;
};

}  // namespace

TEST_CASE("Stored heads take the place of a mixer that returns its heads, and edits follow", "[model][interventions]") {
    // Qwen3-Next has a gate behind its heads.
    for (const std::string name : {"llama", "gpt2", "neox", "deepseek-v3", "bloom", "olmo2", "hybrid-qwen3-next"}) {
        INFO(name);
        const Case one = one_text(name);
        const auto& sites = one.model->sites();
        PointKey key = model::places_of(Point::pattern, one.model->config(), sites).back();
        key.point = Point::head_output;
        model::PointRecorder recorder({key});
        model::ForwardOptions options;
        options.editor = &recorder;
        one.model->forward(one.batch, options);
        Intervention set = edit(Point::head_output, Action::set, {key.layer});
        set.value = numbers(recorder.values.at(key).sizes());
        Intervention zero = edit(Point::head_output, Action::zero, {key.layer});
        zero.heads = {1};

        StoredHeads stored(key, set.value);
        model::Interventions zeros({zero}, one.model->config(), sites);
        model::EditorChain both({&stored, &zeros});
        options.editor = &both;
        const at::Tensor found = one.model->forward(one.batch, options);
        const bool gated = name == "hybrid-qwen3-next";
        CHECK(stored.queries == (gated ? 1 : 0));
        CHECK(close(found, gated ? run(one, {zero}) : run(one, {set, zero})));
    }
}

TEST_CASE("Stored heads with one edited head a row are projected once, and each row's change",
          "[model][interventions]") {
    for (const std::string name : {"llama", "gpt2", "neox", "deepseek-v3", "bloom", "olmo2"}) {
        INFO(name);
        Case one = one_text(name);
        one.batch.ids = one.batch.ids.expand({3, one.batch.ids.size(1)}).contiguous();
        PointKey key = model::places_of(Point::pattern, one.model->config(), one.model->sites()).back();
        for (const std::int64_t layer : {std::int64_t{0}, key.layer}) {
            key.site -= key.layer - layer;
            key.layer = layer;
            key.point = Point::head_output;
            model::PointRecorder recorder({key});
            model::ForwardOptions options;
            options.editor = &recorder;
            one.model->forward(one.batch, options);
            StoredHeads stored(key, recorder.values.at(key).narrow(0, 0, 1));
            const auto found = [&](const std::vector<std::int64_t>& named) {
                ZeroedHeads zeroed(key, {-1, 1, 0}, named);
                model::EditorChain both({&stored, &zeroed});
                options.editor = &both;
                return one.model->forward(one.batch, options);
            };
            const at::Tensor whole = found({});
            REQUIRE_FALSE(close(whole.narrow(0, 1, 1), whole.narrow(0, 0, 1)));
            CHECK(close(found({-1, 1, 0}), whole));
            // A change that is not named has no effect; lists of other lengths are not read.
            CHECK(close(found({-1, -1, 0}).narrow(0, 1, 1), whole.narrow(0, 0, 1)));
            CHECK(close(found({-1, 1}), whole));
        }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <algorithm>

#include <ATen/TensorOperators.h>

#include "core/ask/ablate.h"
#include "tests/core/ask/asked_model.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/head_edit.h"
#include "tests/core/model/recording_probe.h"

using namespace headscope;
using ask::AblateBy;
using model::Action;
using model::Intervention;
using model::Point;
using test::at_cell;
using test::near;

namespace {

store::AskRecord ablated(const test::AskedModel& asked, AblateBy how,
                         std::vector<store::SequenceTokens> reference = {}) {
    store::AskRecord record = asked.record("ablate");
    ask::AblateOptions options;
    options.how = how;
    options.reference = std::move(reference);
    NoProgress progress;
    ask::run_ablate(*asked.model, options, record, progress, Cancellation());
    return record;
}

Intervention at_layer(Point point, std::int64_t layer, Action action) {
    Intervention what;
    what.point = point;
    what.layers = {layer};
    what.action = action;
    return what;
}

}  // namespace

TEST_CASE("Ablated losses are those of the same interventions", "[ask][ablate]") {
    for (const std::string name : {"gpt2", "llama", "hybrid-qwen3-next"}) {
        INFO(name);
        const test::AskedModel asked(name);
        for (const auto& [how, action] :
             {std::pair(AblateBy::zero, Action::zero), std::pair(AblateBy::mean, Action::mean)}) {
            const store::AskRecord record = ablated(asked, how);
            CHECK(record.complete);
            for (std::int64_t s = 0; s < 2; ++s) {
                const auto text = static_cast<std::size_t>(s);
                CHECK(near(at_cell(record, "/ablate/baseline", {s}), asked.loss(text)));
                for (std::int64_t site = 0; site < std::ssize(record.sites); ++site)
                    CHECK(near(at_cell(record, "/ablate/head", {s, site, 1}),
                               asked.loss(text, {test::head_edit(record.sites, site, 1, action)})));
                CHECK(near(at_cell(record, "/ablate/attention", {s, 1}),
                           asked.loss(text, {at_layer(Point::attention_output, 1, action)})));
                CHECK(near(at_cell(record, "/ablate/feed_forward", {s, 0}),
                           asked.loss(text, {at_layer(Point::feed_forward_output, 0, action)})));
            }
        }
    }
}

TEST_CASE("Reference texts give their mean over all tokens, or their own values", "[ask][ablate]") {
    const test::AskedModel asked("llama");
    test::RecordingProbe first(false, {"head_output"}), second(false, {"head_output"});
    for (const auto& [text, probe] : {std::pair(std::size_t{0}, &first), std::pair(std::size_t{1}, &second)}) {
        model::Batch batch;
        batch.ids = asked.ids(text);
        model::ForwardOptions options;
        options.probe = probe;
        asked.model->forward(batch, options);
    }
    const at::Tensor a = first.at("head_output", 1)[0], b = second.at("head_output", 1)[0];
    Intervention what = test::head_edit(asked.model->sites(), 1, 2, Action::set);
    what.value = (a.sum(1) + b.sum(1)) / static_cast<double>(a.size(1) + b.size(1));
    const store::AskRecord mean = ablated(asked, AblateBy::reference, asked.sequences());
    CHECK(near(at_cell(mean, "/ablate/head", {0, 1, 2}), asked.loss(0, {what})));
    what.value = b;
    const store::AskRecord other = ablated(asked, AblateBy::resample, {asked.sequences()[1]});
    CHECK(near(at_cell(other, "/ablate/head", {0, 1, 2}), asked.loss(0, {what})));
    CHECK(near(at_cell(other, "/ablate/head", {1, 1, 2}), asked.loss(1)));
    CHECK_THROWS_MATCHES(ablated(asked, AblateBy::resample), Error,
                         test::IsError(ErrorCode::usage, "--reference-tokens"));
    CHECK_THROWS_MATCHES(ablated(asked, AblateBy::zero, asked.sequences()), Error,
                         test::IsError(ErrorCode::usage, "--reference-tokens"));
}

TEST_CASE("Reference texts of other lengths are refused before the first run", "[ask][ablate]") {
    const test::AskedModel asked("llama");
    store::AskRecord record = asked.record("ablate");
    ask::AblateOptions options;
    options.how = AblateBy::resample;
    options.reference = asked.sequences();
    options.reference[1].ids.pop_back();
    NoProgress progress;
    CHECK_THROWS_MATCHES(ask::run_ablate(*asked.model, options, record, progress, Cancellation()), Error,
                         test::IsError(ErrorCode::usage, "expected text 1 to have "));
    CHECK(record.tables.empty());
}

TEST_CASE("The loss of a text of one token is refused before the first run", "[ask][ablate]") {
    const test::AskedModel asked("llama");
    store::AskRecord record = asked.record("ablate");
    record.sequences[1].ids.resize(1);
    NoProgress progress;
    CHECK_THROWS_MATCHES(ask::run_ablate(*asked.model, {}, record, progress, Cancellation()), Error,
                         test::IsError(ErrorCode::usage, "at least 2 tokens for loss; found 1 in text 1"));
    CHECK(record.tables.empty());
}

TEST_CASE("Importance is the slope of the loss when a head is scaled", "[ask][ablate][gradients]") {
    const test::AskedModel asked("llama");
    store::AskRecord record = asked.record("ablate");
    ask::AblateOptions options;
    options.importance = true;
    NoProgress progress;
    ask::run_ablate(*asked.model, options, record, progress, Cancellation());
    double expected = 0;
    for (std::size_t text = 0; text < 2; ++text) {
        test::RecordingProbe probe(false, {"head_output"});
        model::Batch batch;
        batch.ids = asked.ids(text);
        model::ForwardOptions forward;
        forward.probe = &probe;
        asked.model->forward(batch, forward);
        Intervention scaled = test::head_edit(asked.model->sites(), 1, 2, Action::add);
        scaled.value = probe.at("head_output", 1);
        const auto loss = [&](double factor) {
            scaled.factor = factor;
            return asked.loss(text, {scaled});
        };
        expected += std::abs((loss(0.02) - loss(-0.02)) / 0.04) / 2;
    }
    CHECK(std::abs(at_cell(record, "/ablate/importance", {1, 2}) - expected) < 0.02 * expected + 1e-3);
    double squares = 0;
    for (std::int64_t h = 0; h < 4; ++h)
        squares += std::pow(at_cell(record, "/ablate/importance_normalized", {1, h}), 2);
    CHECK(near(squares, 1));
}

TEST_CASE("Progress counts the texts of importance and the cells of the sweep", "[ask][ablate]") {
    struct Recorded final : Progress {
        void advance(double done, double total, const std::string& what) override {
            CHECK(done >= last);
            CHECK(done <= total);
            if (last > 0) CHECK(total == all);
            last = done;
            all = total;
            steps.push_back(what);
        }
        double last = 0, all = 0;
        std::vector<std::string> steps;
    };
    const test::AskedModel asked("llama");
    store::AskRecord record = asked.record("ablate");
    ask::AblateOptions options;
    options.importance = true;
    Recorded progress;
    ask::run_ablate(*asked.model, options, record, progress, Cancellation());
    CHECK(progress.last == progress.all);
    const auto& steps = progress.steps;
    CHECK(std::count(steps.begin(), steps.end(), "importance, text 1 of 2") == 1);
    CHECK(std::count(steps.begin(), steps.end(), "importance, text 2 of 2") == 1);
    // The whole file again: neither importance nor cells are left.
    Recorded again;
    ask::run_ablate(*asked.model, options, record, again, Cancellation());
    CHECK(again.steps.empty());
}

// SPDX-License-Identifier: GPL-3.0-or-later
// Candidates of the window's generation by the vectors of a steer file.
#include <ATen/ops/tensor.h>

#include <QString>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "app/window/asks/step_service.h"
#include "app/window/engine.h"
#include "app/window/text_job.h"
#include "core/model/edits/editor.h"
#include "core/model/model.h"
#include "core/store/ask/ask_file.h"
#include "tests/app/steps/stepped_sample.h"
#include "tests/catch_with_torch.h"
#include "tests/core/figures/sample_asks.h"

using namespace headscope;
using testing::SteppedSample;

namespace {

/// A steer file with a vector for each layer.
store::AskRecord vectors_for(const model::ModelConfig& config) {
    store::AskRecord record;
    record.tool = "steer";
    record.add_dimension("/layer", config.all_layers(), "layer");
    record.add_dimension("/channel", config.hidden, "channel");
    test::fill_ask_table(record, "/steer/vector", {"/layer", "/channel"});
    return record;
}

/// Adds factor times its vector to the output of a layer; -1: of each.
class VectorEditor final : public model::Editor {
public:
    VectorEditor(const store::AskRecord& file, std::int64_t layer, double factor)
        : file_(&file), layer_(layer), factor_(factor) {}
    bool edits(const model::PointKey& key) const override {
        return key.point == model::Point::hidden && (layer_ < 0 || key.layer == layer_);
    }
    at::Tensor edit(const model::EditPlace& place, const at::Tensor& value) override {
        const std::int64_t size = value.size(2);
        std::vector<float> row;
        for (std::int64_t i = 0; i < size; ++i) {
            const auto cell = static_cast<std::size_t>(place.key.layer * size + i);
            row.push_back(static_cast<float>(factor_ * file_->table("/steer/vector").values[cell]));
        }
        return value.add(at::tensor(row));
    }

private:
    const store::AskRecord* file_;
    std::int64_t layer_;
    double factor_;
};

/// Probabilities of the token after a text, or after the target of an encoder-decoder, by a pass without a cache.
std::vector<double> next_by_pass(model::Model& model, const std::vector<std::int64_t>& text, model::Editor* editor,
                                 const std::vector<std::int64_t>& target = {}) {
    model::Batch batch;
    batch.ids = at::tensor(text, at::kLong).unsqueeze(0);
    if (!target.empty()) batch.target = at::tensor(target, at::kLong).unsqueeze(0);
    model::ForwardOptions options;
    options.editor = editor;
    const at::Tensor hidden = model.forward(batch, options).select(0, 0);
    const at::Tensor row = model.logits(hidden.narrow(0, hidden.size(0) - 1, 1)).contiguous();
    const float* logits = row.const_data_ptr<float>();
    std::vector<double> found;
    double sum = 0;
    for (std::int64_t i = 0; i < row.numel(); ++i) {
        found.push_back(std::exp(static_cast<double>(logits[i])));
        sum += found.back();
    }
    for (double& one : found) one /= sum;
    return found;
}

}  // namespace

TEST_CASE("Candidates by a steer file's vectors are those of a pass with the vectors added", "[app][stepper]") {
    SteppedSample sample;
    sample.begin({QStringLiteral("The king"), 3, 0, 0, true});
    sample.service.step(2);
    sample.finish();
    const auto open = sample.engine.opened(sample.choice.model);
    REQUIRE(open->weights);
    const auto file = std::make_shared<const store::AskRecord>(vectors_for(open->inspection.config));
    const std::vector<std::int64_t> whole = sample.tokens();
    std::vector<std::int64_t> text;
    for (const auto& word : sample.service.generation()->prompt) text.push_back(word.id);
    text.push_back(whole.front());
    for (const int layer : {1, -1}) {
        INFO(layer);
        const widgets::StepVector by{file, layer, 2};
        sample.service.steer(1, by);
        sample.finish();
        const auto shown = sample.service.steering();
        REQUIRE(shown);
        CHECK(shown->step == sample.service.generation()->steps[1]);
        CHECK(shown->by == by);
        VectorEditor editor(*file, layer, 2);
        const std::vector<double> without = next_by_pass(*open->weights, text, nullptr);
        const std::vector<double> with = next_by_pass(*open->weights, text, &editor);
        REQUIRE(shown->words.size() >= 3);
        std::vector<std::int64_t> ids;
        double change = 0;
        for (const widgets::SteeredWord& one : shown->words) {
            const auto id = static_cast<std::size_t>(one.word.id);
            CHECK(one.without == Approx(without.at(id)).margin(1e-4));
            CHECK(one.with == Approx(with.at(id)).margin(1e-4));
            change = std::max(change, std::abs(one.with - one.without));
            ids.push_back(one.word.id);
        }
        CHECK(change > 1e-3);
        const auto likeliest = std::max_element(with.begin(), with.end()) - with.begin();
        CHECK(std::count(ids.begin(), ids.end(), likeliest) == 1);
    }
    CHECK(sample.failures.isEmpty());
    // Eight channels.
    sample.service.steer(1, {std::make_shared<const store::AskRecord>(test::sample_ask("steer")), 0, 1});
    sample.finish();
    REQUIRE(sample.failures.size() == 1);
    CHECK(sample.failures.first().first().toString().contains(QLatin1String("steer file")));
    sample.service.steer(7, {file, 0, 1});
    sample.finish();
    CHECK(sample.failures.size() == 2);
    CHECK(sample.tokens() == whole);
}

TEST_CASE("Candidates of an encoder-decoder are those of a pass with vectors added in either stack", "[app][stepper]") {
    SteppedSample sample("bart");
    sample.choice.target = QStringLiteral("w8");
    sample.begin({QString(), 3, 0, 0, true});
    sample.service.step(2);
    sample.finish();
    const auto open = sample.engine.opened(sample.choice.model);
    REQUIRE(open->weights);
    const auto file = std::make_shared<const store::AskRecord>(vectors_for(open->inspection.config));
    std::vector<std::int64_t> source, target;
    for (const auto& word : sample.service.generation()->prompt) source.push_back(word.id);
    for (const auto& word : sample.service.generation()->target) target.push_back(word.id);
    const std::vector<std::int64_t> whole = sample.tokens();
    target.push_back(whole.front());
    for (const int layer : {0, 2, -1}) {  // of the encoder, of the decoder, all three
        INFO(layer);
        const widgets::StepVector by{file, layer, 2};
        sample.service.steer(1, by);
        sample.finish();
        const auto shown = sample.service.steering();
        REQUIRE(shown);
        CHECK(shown->by == by);
        CHECK(shown->step == sample.service.generation()->steps[1]);
        VectorEditor editor(*file, layer, 2);
        const std::vector<double> without = next_by_pass(*open->weights, source, nullptr, target);
        const std::vector<double> with = next_by_pass(*open->weights, source, &editor, target);
        double change = 0;
        for (const widgets::SteeredWord& one : shown->words) {
            const auto id = static_cast<std::size_t>(one.word.id);
            CHECK(one.without == Approx(without.at(id)).margin(1e-5));
            CHECK(one.with == Approx(with.at(id)).margin(1e-5));
            change = std::max(change, std::abs(one.with - one.without));
        }
        CHECK(change > 1e-4);
    }
    CHECK(sample.failures.isEmpty());
    CHECK(sample.tokens() == whole);
}

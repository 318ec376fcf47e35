// SPDX-License-Identifier: GPL-3.0-or-later
// Passes for one position, and passes in which stored heads take the place of mixers, against whole passes.
#include "tests/catch_with_torch.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/mixers/mixer.h"
#include "core/model/edits/intervention.h"
#include "core/model/towers/cache.h"
#include "core/model/towers/stack.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/edits/intervention_case.h"
#include "tests/core/model/recording_probe.h"

using namespace headscope;
using namespace headscope::test::edits;
using model::Action;
using model::Intervention;
using model::Point;
using model::PointKey;
using test::IsError;
using test::RecordingProbe;

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

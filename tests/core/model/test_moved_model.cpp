// SPDX-License-Identifier: GPL-3.0-or-later
// Moves to LibTorch's meta device, which has shapes and no numbers.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <set>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>

#include "core/base/error.h"
#include "core/model/device.h"
#include "core/model/towers/moved_passes.h"
#include "tests/core/model/native_model.h"
#include "tests/core/model/recording_probe.h"

using namespace headscope;
using model::Trainable;

namespace {

/// Doubles values of one point, and stores those of another.
class Doubling final : public model::Editor {
public:
    bool edits(const model::PointKey& key) const override { return key.point == model::Point::query; }
    at::Tensor edit(const model::EditPlace& place, const at::Tensor& value) override {
        return place.first_position > 0 ? value : value * 2;
    }
    at::Tensor stored_heads(const model::PointKey& key) const override {
        return key.point == model::Point::head_output ? at::zeros({1, 1, 1, 1}) : at::Tensor();
    }
};

}  // namespace

TEST_CASE("A moved trainable model keeps one vector of weights and one of gradients", "[device]") {
    const auto model = Trainable::create(test::native_config({"standard", "fixed_seq_qk"}).dump(), 3, at::kFloat);
    struct Place {
        std::vector<std::int64_t> sizes, strides;
        std::int64_t offset, gradient;
    };
    std::vector<Place> leaves;
    for (const at::Tensor& leaf : model->leaves())
        leaves.push_back(
            {leaf.sizes().vec(), leaf.strides().vec(), leaf.storage_offset(), leaf.grad().storage_offset()});
    std::vector<std::vector<std::int64_t>> shapes;
    for (const model::Parameter& one : model->parameters()) shapes.push_back(one.value.sizes().vec());
    REQUIRE(model->has_guide_ids());

    CHECK(model->device().is_cpu());
    model->to(at::kMeta);
    CHECK(model->device() == at::Device(at::kMeta));
    CHECK(model->weights().is_meta());
    CHECK(model->gradients().is_meta());
    REQUIRE(model->leaves().size() == leaves.size());
    for (std::size_t i = 0; i < leaves.size(); ++i) {
        const at::Tensor& leaf = model->leaves()[i];
        CHECK(leaf.requires_grad());
        CHECK(leaf.is_leaf());
        CHECK(leaf.is_alias_of(model->weights()));
        CHECK(leaf.sizes().vec() == leaves[i].sizes);
        CHECK(leaf.strides().vec() == leaves[i].strides);
        CHECK(leaf.storage_offset() == leaves[i].offset);
        CHECK(leaf.grad().is_alias_of(model->gradients()));
        CHECK(leaf.grad().storage_offset() == leaves[i].gradient);
    }
    REQUIRE(model->parameters().size() == shapes.size());
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        CHECK(model->parameters()[i].value.is_meta());
        CHECK(model->parameters()[i].value.sizes().vec() == shapes[i]);
    }
    const at::Tensor head = model->head_weight();
    CHECK(std::any_of(model->leaves().begin(), model->leaves().end(),
                      [&head](const at::Tensor& leaf) { return leaf.is_same(head); }));
}

TEST_CASE("The model of a trainable one is not moved by itself", "[device]") {
    const auto model = Trainable::create(test::native_config({"standard"}).dump(), 3, at::kFloat);
    try {
        model->model().to(at::kMeta);
        FAIL("moved");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::usage);
    }
    CHECK(model->device().is_cpu());
    CHECK(model->weights().is_cpu());
    model->model().to(at::kCPU);  // where it is
}

TEST_CASE("On the processor tensors and passes stay the same", "[device]") {
    const at::Tensor numbers = at::arange(6, at::kFloat);
    CHECK(model::on_processor(numbers).is_same(numbers));
    CHECK(model::on_device(numbers, at::kCPU).is_same(numbers));
    CHECK(model::for_kernel(numbers).is_same(numbers));
    CHECK_FALSE(model::on_processor(at::Tensor()).defined());
    CHECK_FALSE(model::on_device(at::Tensor(), at::kMeta).defined());
    CHECK_FALSE(model::for_kernel(at::Tensor()).defined());

    const at::Tensor written = at::zeros({6}, at::kFloat);
    model::give_back(numbers, numbers);
    model::give_back(at::Tensor(), written);
    model::give_back(written, numbers);
    CHECK(at::equal(written, at::arange(6, at::kFloat)));

    const model::Batch batch = test::some_tokens(2, 5);
    const std::vector<model::Model::Pass> given{{&batch, {}}};
    CHECK(&model::MovedPasses(given, at::kCPU).passes() == &given);
}

TEST_CASE("Passes on another device have its ids, and probes and editors of the processor", "[device]") {
    model::Batch batch = test::some_tokens(2, 5);
    batch.labels = at::zeros({2}, at::kLong);
    test::RecordingProbe probe(false, {"hidden"});
    Doubling editor;
    model::ForwardOptions options;
    options.probe = &probe;
    options.editor = &editor;
    options.skip_layers = {1};
    const std::vector<model::Model::Pass> given{{&batch, options}, {&batch, {}}};
    const model::MovedPasses moved(given, at::kMeta);
    REQUIRE(moved.passes().size() == 2);
    const auto& [own, there] = moved.passes()[0];
    CHECK(own->ids.is_meta());
    CHECK(own->ids.sizes() == batch.ids.sizes());
    CHECK_FALSE(own->token_types.defined());
    CHECK(batch.ids.is_cpu());
    CHECK(there.skip_layers == std::set<int>{1});
    CHECK(moved.passes()[1].options.probe == nullptr);
    CHECK(moved.passes()[1].options.editor == nullptr);

    REQUIRE(there.probe != nullptr);
    CHECK(there.probe->wants("hidden", LayerIndex(0)));
    CHECK_FALSE(there.probe->wants("query", LayerIndex(0)));
    REQUIRE(there.editor != nullptr);
    CHECK_FALSE(there.editor->edits({model::Point::key, 0, 0}));
    CHECK(there.editor->edits({model::Point::query, 0, 0}));
    CHECK(there.editor->stored_heads({model::Point::head_output, 0, 0}).defined());
    CHECK_FALSE(there.editor->stored_heads({model::Point::query, 0, 0}).defined());
    const at::Tensor value = at::arange(4, at::kFloat);
    model::EditPlace place;
    place.key = {model::Point::query, 0, 0};
    CHECK(at::equal(there.editor->edit(place, value), value * 2));
    place.first_position = 1;
    CHECK(there.editor->edit(place, value).is_same(value));
}

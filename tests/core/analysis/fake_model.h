// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A model of random projections that can be measured. It has rotary-free causal or full attention with grouped
// heads, announces what real models announce, and can be set to stop or fail in the middle.

#include <functional>
#include <limits>
#include <stdexcept>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tril.h>
#include <ATen/ops/xlogy.h>

#include "core/model/model.h"
#include "core/model/towers/cache.h"
#include "kernels/attention.h"
#include "kernels/recurrent.h"

namespace headscope::tests {

class FakeModel final : public model::Model {
public:
    struct Options {
        std::int64_t layers = 3, heads = 4, key_value_heads = 2, size = 8, vocabulary = 40, positions = 64;
        bool causal = true, head = true;
        std::int64_t experts = 0;  ///< of every layer but the first, two of a token, announced and not computed
        /// The first layer has biases of three distances, the second slopes, the last one Elastic-Softmax with offsets.
        bool distances = false;
        bool head_embeddings = false;  ///< the last layer has those of embeddings_of()
        bool two_branches = false;  ///< the last layer has a linear branch beside, with types of chunks of four tokens
        model::HeadKind kind = model::HeadKind::vocabulary;
        std::int64_t classes = 0;  ///< of a head of classes: their logits are the first numbers of a row
    };

    explicit FakeModel(Options options) : o_(options) {
        config_.family = "fake";
        config_.name = "fake";
        config_.vocabulary = o_.vocabulary;
        config_.hidden = o_.heads * o_.size;
        config_.feed_forward = config_.hidden;
        config_.layers = o_.layers;
        config_.heads = o_.heads;
        config_.key_value_heads = o_.key_value_heads;
        config_.head_size = o_.size;
        config_.max_positions = o_.positions;
        config_.causal = o_.causal;
        config_.head = o_.kind;
        config_.classes = o_.classes;
        config_.experts = o_.experts;
        config_.experts_per_token = o_.experts > 0 ? 2 : 0;
        config_.original_json = "{}";
        auto generator = at::detail::createCPUGenerator(7);
        const auto random = [&](std::int64_t rows, std::int64_t columns) {
            return at::randn({rows, columns}, generator, at::TensorOptions(at::kFloat)) / 4;
        };
        embedding_ = random(o_.vocabulary, config_.hidden) * 4;
        for (std::int64_t layer = 0; layer < o_.layers; ++layer) {
            q_.push_back(random(o_.heads * o_.size, config_.hidden));
            k_.push_back(random(o_.key_value_heads * o_.size, config_.hidden));
            v_.push_back(random(o_.key_value_heads * o_.size, config_.hidden));
            Site site;
            site.layer = static_cast<std::int32_t>(layer);
            site.heads = static_cast<std::int32_t>(o_.heads);
            site.key_value_heads = static_cast<std::int32_t>(o_.key_value_heads);
            site.key_size = site.value_size = static_cast<std::int32_t>(o_.size);
            site.causal = o_.causal;
            sites_.push_back(site);
        }
        if (o_.distances) {
            sites_[0].bias_length = static_cast<std::int32_t>(kDistances);
            sites_[1].has_slopes = sites_.back().has_offsets = true;
        }
        sites_.back().has_head_embeddings = o_.head_embeddings;
        if (!o_.two_branches) return;
        sites_.back().branch = "softmax";
        sites_.push_back(sites_.back());
        sites_.back().branch = "linear";
        sites_.back().has_matrix = false;
        sites_.back().has_implicit = true;
        sites_.back().type_chunk = static_cast<std::int32_t>(kChunk);
    }

    /// [3, heads, size]: all different.
    at::Tensor embeddings_of() const {
        return at::arange(3 * o_.heads * o_.size, at::kFloat).view({3, o_.heads, o_.size}) / 8;
    }
    static constexpr std::int64_t kChunk = 4;
    /// One chunk of a row of the batch.
    static std::int8_t type_of(std::int64_t b, std::int64_t head, std::int64_t chunk) {
        return (b + head + chunk) % 3 == 0 ? 0 : 1;
    }
    static constexpr std::int64_t kDistances = 3;
    static float bias_of(std::int64_t head, std::int64_t distance) {
        return 0.25F * static_cast<float>(head) - 0.5F * static_cast<float>(distance);
    }
    static float slope_of(std::int64_t head) { return 0.125F * static_cast<float>(head + 1); }
    static float offset_of(std::int64_t head) { return -1.0F - 0.25F * static_cast<float>(head); }
    static constexpr double kDeviation = 0.25;  ///< that the linear branch announces

    std::function<void(std::int64_t layer)> before_layer;  ///< may throw, cancel, or look at the files
    std::vector<std::int64_t> batch_sizes;                 ///< of every forward pass

    const model::ModelConfig& config() const override { return config_; }
    const std::vector<Site>& sites() const override { return sites_; }
    std::vector<std::string> mixers() const override {
        return std::vector<std::string>(static_cast<std::size_t>(o_.layers), "standard");
    }
    model::LoadReport& loaded() { return report_; }
    /// A number of the layer's values becomes NaN: so does what it hands on.
    void spoil(std::int64_t layer) {
        v_.at(static_cast<std::size_t>(layer))[0][0] = std::numeric_limits<float>::quiet_NaN();
    }
    const model::LoadReport& report() const override { return report_; }
    std::int64_t parameters() const override { return 0; }
    bool causal() const override { return o_.causal; }
    bool has_head() const override { return o_.head && o_.classes == 0; }
    bool has_classes() const override { return o_.classes > 0; }
    std::unique_ptr<model::Cache> new_cache() const override { return nullptr; }

    at::Tensor logits(const at::Tensor& rows, model::Probe*) override {
        return o_.classes > 0 ? rows.narrow(1, 0, o_.classes).contiguous() : rows.matmul(embedding_.t());
    }

    at::Tensor forward(const model::Batch& batch, const model::ForwardOptions& options) override {
        batch_sizes.push_back(batch.ids.size(0));
        at::Tensor hidden =
            embedding_.index_select(0, batch.ids.flatten()).view({batch.ids.size(0), batch.ids.size(1), -1});
        announce(options.probe, "embedding", -1, hidden);
        for (std::int64_t layer = 0; layer < o_.layers; ++layer) {
            if (before_layer) before_layer(layer);
            if (options.cancellation != nullptr) options.cancellation->check();
            if (!options.skip_layers.contains(static_cast<int>(layer))) {
                const bool branches = o_.two_branches && layer + 1 == o_.layers;
                if (branches) tell_branches(hidden, layer, options.probe);
                hidden = hidden + attend(hidden, layer, options);
                if (layer > 0 && o_.experts > 0) route(batch.ids, layer, options.probe);
                announce(options.probe, "hidden", layer, hidden);
            }
            if (options.after_layer) options.after_layer(static_cast<int>(layer));
        }
        return hidden;
    }

private:
    static void announce(model::Probe* probe, std::string_view name, std::int64_t layer, const at::Tensor& value) {
        if (probe != nullptr && probe->wants(name, LayerIndex(layer))) probe->announce(name, LayerIndex(layer), value);
    }

    /// Token t goes through experts t and t + layer, modulo their number; the second has the larger weight.
    void route(const at::Tensor& ids, std::int64_t layer, model::Probe* probe) const {
        const at::Tensor first = ids.unsqueeze(-1), index = at::cat({first, first + layer}, -1).remainder(o_.experts);
        const at::Tensor share = first.to(at::kFloat) / 100;
        announce(probe, "expert_index", layer, index);
        announce(probe, "expert_weight", layer, at::cat({share, 1 - share}, -1));
    }

    /// The linear branch is announced, not computed: a causal matrix with signs, the softmax branch's weight 1 / (t +
    /// 1).
    void tell_branches(const at::Tensor& hidden, std::int64_t layer, model::Probe* probe) const {
        const std::int64_t batch = hidden.size(0), length = hidden.size(1), chunks = (length + kChunk - 1) / kChunk;
        at::Tensor types = at::empty({batch, o_.heads, chunks}, at::kChar);
        std::int8_t* type = types.mutable_data_ptr<std::int8_t>();
        for (std::int64_t i = 0; i < types.numel(); ++i)
            type[i] = type_of(i / chunks / o_.heads, i / chunks % o_.heads, i % chunks);
        announce(probe, "token_types", layer, types);
        const at::Tensor softmax = 1 / (at::arange(length, at::kFloat) + 1);
        announce(probe, "branch_weights", layer,
                 at::stack({1 - softmax, softmax}, -1).expand({batch, o_.heads, length, 2}));
        if (probe == nullptr) return;
        const auto wanted = probe->implicit_request(SiteIndex(o_.layers));
        if (wanted == model::Probe::Implicit::nothing) return;
        const auto l = static_cast<std::size_t>(layer);
        const at::Tensor q = hidden.matmul(q_[l].t()).unflatten(2, {o_.heads, o_.size}).transpose(1, 2);
        const at::Tensor matrix = at::tril(at::tanh(q.matmul(q.transpose(2, 3)) - 1)).contiguous();
        const at::Tensor size = matrix.abs().to(at::kDouble), rows = size / size.sum(-1, true);
        const at::Tensor entropy = -at::xlogy(rows, rows).sum({-2, -1}), square = rows.square().sum({-2, -1}).sqrt();
        kernels::ImplicitStatistics statistics;
        for (std::int64_t i = 0; i < batch * o_.heads; ++i) {
            statistics.entropy.push_back(entropy.flatten()[i].item<double>());
            statistics.entropy_row_mean.push_back(statistics.entropy.back() / static_cast<double>(length));
            statistics.concentration.push_back(square.flatten()[i].item<double>());
        }
        const bool weights = wanted == model::Probe::Implicit::weights;
        probe->implicit({SiteIndex(o_.layers), sites_.back(), statistics, weights ? matrix : at::Tensor(),
                         weights ? kDeviation : 0.0});
    }

    at::Tensor attend(const at::Tensor& hidden, std::int64_t layer, const model::ForwardOptions& options) {
        const auto heads = [&](const at::Tensor& weight) {
            return hidden.matmul(weight.t()).unflatten(2, {weight.size(0) / o_.size, o_.size}).transpose(1, 2);
        };
        const auto l = static_cast<std::size_t>(layer);
        const at::Tensor q = heads(q_[l]), k = heads(k_[l]), v = heads(v_[l]);
        if (sites_[l].has_head_embeddings) announce(options.probe, "head_embeddings", layer, embeddings_of());
        announce(options.probe, "query", layer, q);
        announce(options.probe, "key", layer, k);
        announce(options.probe, "value", layer, v);
        kernels::ScoreRule rule;
        rule.scale = 0.5;
        rule.causal = o_.causal;
        for (std::int64_t h = 0; h < o_.heads && o_.distances; ++h) {
            for (std::int64_t d = kDistances; layer == 0 && d-- > 0;) rule.distance_bias.push_back(bias_of(h, d));
            if (layer == 1) rule.slopes.push_back(slope_of(h));
            if (layer + 1 == o_.layers) rule.offsets.push_back(offset_of(h));
        }
        if (!rule.distance_bias.empty()) {
            rule.bias_length = kDistances;
            rule.bias_origin = kDistances - 1;
            rule.beyond_table = kernels::BeyondTable::zero;
        }
        if (!rule.offsets.empty()) rule.normaliser = kernels::Normaliser::elastic;
        const auto view = [](const at::Tensor& t) {
            return kernels::TensorView{t.const_data_ptr(), kernels::ElementType::float32,
                                       t.size(0),          t.size(1),
                                       t.size(2),          t.size(3),
                                       t.stride(0),        t.stride(1),
                                       t.stride(2)};
        };
        kernels::AttentionInput input{view(q), view(k), view(v), &rule,
                                      options.cancellation != nullptr ? options.cancellation->flag() : nullptr};
        at::Tensor out = at::empty({q.size(0), q.size(1), q.size(2), o_.size}, at::kFloat);
        const kernels::OutputView to{out.mutable_data_ptr<float>(), out.stride(0), out.stride(1), out.stride(2)};
        const auto* request = options.probe != nullptr ? options.probe->request(SiteIndex(layer)) : nullptr;
        kernels::Statistics statistics;
        kernels::attention(input, to, request, request != nullptr ? &statistics : nullptr);
        if (request != nullptr) options.probe->measured({SiteIndex(layer), sites_[l], q, k, v, out, rule, statistics});
        return out.transpose(1, 2).flatten(2);
    }

    Options o_;
    model::ModelConfig config_;
    model::LoadReport report_;
    std::vector<Site> sites_;
    at::Tensor embedding_;
    std::vector<at::Tensor> q_, k_, v_;
};

}  // namespace headscope::tests

// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "core/base/error.h"
#include "core/mixers/factories.h"
#include "core/mixers/mixer.h"
#include "core/mixers/shared/attend.h"
#include "core/mixers/shared/delta_parts.h"
#include "core/mixers/shared/key_value_cache.h"
#include "core/mixers/shared/tensor_views.h"
#include "core/mixers/types/natsl.h"
#include "core/model/blocks.h"
#include "core/model/device.h"
#include "core/model/load/tensor_plan.h"
#include "core/model/random_fill.h"
#include "core/model/training_forward.h"
#include "core/model/training_ops.h"
#include "kernels/score_rule.h"

namespace headscope::mixers {

class NatslCache;

/// Softmax attention and Gated DeltaNet over the same queries, keys and values (Deng et al., "Neural Attention Search
/// Linear"). Each linear head types each chunk of tokens by the mean of what the layer reads: a softmax chunk's keys
/// are seen by later queries of the head's softmax heads, a linear chunk's stay in its state. In its own chunk a query
/// sees all. The two outputs are normed, weighted and gated. Two sites: softmax, linear. Time is quadratic in the
/// tokens of softmax chunks alone; so is memory linear.
///
/// The choice trains straight through: forwards a type is 0 or 1, backwards it has the gradient of the softmax of the
/// two scores, and what is behind it that of a factor (Eq. 14 to 16).
class NatslMixer final : public Mixer {
public:
    NatslMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kNatsl; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return parts_.sizes().value_rows(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    /// Inputs of both branches.
    struct Read {
        DeltaParts::Heads linear;
        at::Tensor query, key, value;  ///< [B, softmax heads, L, size] as they enter the scores
    };
    Read read(const at::Tensor& normed, const StackContext& context, at::Tensor* before) const;
    /// `inputs` [B, L, d] from a chunk's first token on -> [B, linear heads, chunks, 2]: 1 at the chunk's type
    /// (softmax, linear), 0 at the other. A last chunk that is not full counts by what there is of it.
    at::Tensor types(const at::Tensor& inputs, const StackContext& context) const;
    /// -> [B, L, softmax heads * value size]; `cache` takes in the tokens. The same of linear().
    at::Tensor softmax(const Read& read, const at::Tensor& types, const StackContext& context, NatslCache* cache) const;
    at::Tensor linear(const at::Tensor& normed, const Read& read, const at::Tensor& types, const StackContext& context,
                      NatslCache* cache) const;
    /// The tokens of `read` behind those that the cache holds, chunk by chunk; `attends`: and what they make of it.
    at::Tensor continued(const Read& read, const at::Tensor& types, const StackContext& context, NatslCache& cache,
                         bool attends) const;
    /// [B, L, softmax heads, size] of [B, heads, L, size].
    at::Tensor narrow(const at::Tensor& heads) const;

    DeltaParts parts_;
    std::int64_t heads_ = 0, group_ = 0;  ///< softmax heads, and how many of them have a linear head's types
    std::int64_t chunk_ = 0;
    bool reads_convolution_, decays_softmax_, softmax_inside_, linear_inside_, one_norm_, noisy_, all_scores_;
    std::string weights_;
    kernels::ScoreRule rule_;
    std::optional<model::Rotary> rotary_;
    model::Linear score_, weight_;
    model::Norm query_norm_, key_norm_, linear_norm_, softmax_norm_;  ///< one_norm_: the third is of the sum
};

namespace {

template <class T>
T natsl_option(const model::ModelConfig& config, const std::string& key) {
    return config.mixer_options.get<T>(kNatsl, key);
}

void expect_multiple(const char* key, std::int64_t number, const std::string& what, std::int64_t of) {
    if (number % of == 0) return;
    throw Error(ErrorCode::mismatch, std::string("mixers.natsl.") + key,
                "expected a multiple of " + what + " " + std::to_string(of), "found " + std::to_string(number));
}

/// [B, chunks, size]: the mean of each chunk's tokens, of those that exist. Those of no token: 0.
at::Tensor chunk_means(const at::Tensor& x, std::int64_t size, const std::vector<std::int64_t>* lengths) {
    const std::int64_t length = x.size(1), chunks = (length + size - 1) / size;
    at::Tensor wide = at_least_float(x);
    at::Tensor there = at::full({1, length}, 1.0, wide.options());
    if (lengths) {
        const at::TensorOptions integers = wide.options().dtype(at::kLong);
        there = (at::arange(length, integers) < at::tensor(*lengths, integers).unsqueeze(1)).to(wide.scalar_type());
        // Whatever padding holds, perhaps no number, has no part in the sum.
        wide = wide.masked_fill(there.unsqueeze(2) == 0, 0);
    }
    const std::int64_t missing = chunks * size - length;
    const at::Tensor sums = at::constant_pad_nd(wide, {0, 0, 0, missing}).unflatten(1, {chunks, size}).sum(2);
    const at::Tensor counts = at::constant_pad_nd(there, {0, missing}).unflatten(1, {chunks, size}).sum(2);
    return (sums / counts.clamp_min(1).unsqueeze(2)).to(x.scalar_type());
}

}  // namespace

/// Earlier tokens: those of softmax chunks as keys and values, one list for each sequence and linear head, as heads
/// differ in their types, with the open chunk's behind them; those of linear chunks in the state.
class NatslCache final : public MixerCache {
public:
    std::int64_t bytes() const override {
        std::int64_t sum = linear.bytes() + bytes_of(inputs);
        for (const KeyValueCache& one : softmax) sum += one.bytes();
        return sum;
    }
    std::unique_ptr<MixerCache> clone() const override {
        auto copy = std::make_unique<NatslCache>();
        copy->linear.state = linear.state.clone();
        copy->linear.before = copied(linear.before);
        copy->inputs = copied(inputs);
        for (const KeyValueCache& one : softmax) copy->softmax.push_back(one.copy());
        return copy;
    }
    std::unique_ptr<MixerCache> chosen(const at::Tensor& sequences) const override {
        auto copy = std::make_unique<NatslCache>();
        copy->linear.state = linear.state.chosen(sequences);
        copy->linear.before = of_sequences(linear.before, sequences);
        copy->inputs = of_sequences(inputs, sequences);
        if (softmax.empty()) return copy;
        const auto heads = std::ssize(softmax) / linear.state.now.size(0);
        for (std::int64_t i = 0; i < sequences.numel() * heads; ++i) {
            const std::int64_t from = sequences[i / heads].item<std::int64_t>() * heads + i % heads;
            copy->softmax.push_back(softmax[static_cast<std::size_t>(from)].copy());
        }
        return copy;
    }

    DeltaCache linear;                   ///< its state counts the open chunk's tokens
    at::Tensor inputs;                   ///< [B, open, d] what the layer read of the open chunk
    std::vector<KeyValueCache> softmax;  ///< [B, linear heads] of batch 1; empty: no token yet
};

NatslMixer::NatslMixer(const model::ModelConfig& config, std::int64_t)
    : parts_(DeltaSizes(kNatsl, config), true, true, natsl_option<bool>(config, kNegativeEigenvalue.name)),
      reads_convolution_(natsl_option<bool>(config, "softmax_reads_conv")),
      decays_softmax_(natsl_option<bool>(config, "decay_in_softmax_chunks")),
      softmax_inside_(natsl_option<std::string>(config, "inside_chunk") != "linear"),
      linear_inside_(natsl_option<std::string>(config, "inside_chunk") != "softmax"),
      one_norm_(natsl_option<std::string>(config, "norm") == "sum"),
      noisy_(natsl_option<std::string>(config, "choice") == "gumbel"),
      all_scores_(natsl_option<bool>(config, "score_gradient_all")),
      weights_(natsl_option<std::string>(config, "weights")) {
    const DeltaSizes& sizes = parts_.sizes();
    const auto said = natsl_option<std::int64_t>(config, "num_softmax_heads");
    heads_ = said > 0 ? said : sizes.heads;
    expect_multiple("num_softmax_heads", heads_, "num_heads", sizes.heads);
    group_ = heads_ / sizes.heads;
    expect_multiple("head_dim", sizes.key_size, "softmax heads of a linear one", group_);
    expect_multiple("expand_v", sizes.value_size, "softmax heads of a linear one, as a value's size,", group_);
    chunk_ = natsl_option<std::int64_t>(config, "chunk_size");
    const std::int64_t key_size = sizes.key_size / group_;
    rule_.scale = 1.0 / std::sqrt(static_cast<double>(key_size));
    if (!natsl_option<bool>(config, "rotary")) return;
    expect_multiple("head_dim", key_size, "numbers that turn together (rotary), of a softmax head,", 2);
    model::RopeConfig rope;
    rope.theta = natsl_option<double>(config, "rope_theta");
    rotary_.emplace(rope, key_size, config.max_positions);
}

void NatslMixer::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    parts_.declare(plan, names);
    const model::RecurrentNames& own = names.in_layer.recurrent;
    const std::string stem = names.layer_stem + own.stem;
    const DeltaSizes& sizes = parts_.sizes();
    const model::Dimension hidden{plan.config().hidden, plan.keys().hidden};
    const model::Dimension keys{sizes.key_rows(), "num_heads * head_dim"};
    const model::Dimension key{sizes.key_size / group_, "num_heads * head_dim / num_softmax_heads"};
    const model::Dimension value{sizes.value_size / group_, "num_heads * head_dim * expand_v / num_softmax_heads"};
    score_.declare(plan, stem + "score_proj", {2 * sizes.heads, "2 * num_heads"}, hidden, false);
    if (weights_ != "none") {
        weight_.declare(plan, stem + "weight_proj", {2 * heads_, "2 * num_softmax_heads"},
                        weights_ == "query" ? keys : hidden, false);
    }
    query_norm_.declare(plan, stem + "q_norm", key, false);
    key_norm_.declare(plan, stem + "k_norm", key, false);
    linear_norm_.declare(plan, stem + (one_norm_ ? own.norm : "linear_norm"), value, false);
    if (!one_norm_) softmax_norm_.declare(plan, stem + "softmax_norm", value, false);
}

std::vector<Site> NatslMixer::sites() const {
    Site linear = parts_.site();
    linear.branch = "linear";
    linear.type_chunk = static_cast<std::int32_t>(chunk_);
    Site softmax;
    softmax.branch = "softmax";
    softmax.heads = softmax.key_value_heads = static_cast<std::int32_t>(heads_);
    softmax.key_size = static_cast<std::int32_t>(parts_.sizes().key_size / group_);
    softmax.value_size = static_cast<std::int32_t>(parts_.sizes().value_size / group_);
    return {softmax, linear};
}

at::Tensor NatslMixer::narrow(const at::Tensor& heads) const {
    return heads.transpose(1, 2).flatten(2).unflatten(2, {heads_, -1});
}

NatslMixer::Read NatslMixer::read(const at::Tensor& normed, const StackContext& context, at::Tensor* before) const {
    Read read;
    const at::Tensor projected = parts_.projected(normed, context.cancellation);
    read.linear = parts_.convolved(projected, before);
    const DeltaParts::Heads source = reads_convolution_ ? read.linear : parts_.split(projected);
    at::Tensor query = query_norm_(narrow(source.query)), key = key_norm_(narrow(source.key));
    query = context.pass(model::Point::query, query.transpose(1, 2)).transpose(1, 2);
    key = context.pass(model::Point::key, key.transpose(1, 2)).transpose(1, 2);
    read.value = context.pass(model::Point::value, narrow(source.value).transpose(1, 2));
    if (rotary_) {
        const auto table = rotary_->table(context.first_position, normed.size(1), query.scalar_type());
        query = rotary_->rotate(query, table);
        key = rotary_->rotate(key, table);
        context.announce("query_rotated", query.transpose(1, 2));
        context.announce("key_rotated", key.transpose(1, 2));
    }
    read.query = query.transpose(1, 2);
    read.key = key.transpose(1, 2);
    return read;
}

at::Tensor NatslMixer::types(const at::Tensor& inputs, const StackContext& context) const {
    const at::Tensor means = chunk_means(inputs, chunk_, context.lengths);
    at::Tensor scores = at_least_float(score_(means)).unflatten(2, {parts_.sizes().heads, 2}).transpose(1, 2);
    if (noisy_ && context.training) {
        // As one process draws that has the whole pass.
        const std::int64_t first = context.training->first_sequence;
        const at::Tensor drawn =
            at::empty({first + scores.size(0), scores.size(1), scores.size(2), 2}, scores.options());
        model::fill_uniform(drawn, model::random_key(context.training->dropout_seed,
                                                     std::to_string(context.layer.value) + "token types"));
        const at::Tensor uniform = drawn.narrow(0, first, scores.size(0)).clamp(1e-7, 1 - 1e-7);
        scores = scores - uniform.log().neg().log();
    }
    const at::Tensor linear = (scores.select(3, 1) > scores.select(3, 0)).to(scores.scalar_type());
    const at::Tensor chosen = at::stack({1 - linear, linear}, 3);
    if (context.wants("token_types")) {
        at::Tensor types = linear.to(at::kChar);
        if (context.lengths) {  // chunks past a sequence's end are of no type
            const at::TensorOptions integers = types.options().dtype(at::kLong);
            const at::Tensor begins = at::arange(types.size(2), integers) * chunk_;
            types = types.masked_fill(
                (begins >= at::tensor(*context.lengths, integers).unsqueeze(1)).unsqueeze(1).expand_as(types), -1);
        }
        context.announce("token_types", types);
    }
    if (!model::recorded(scores)) return chosen;
    const at::Tensor shares = at::softmax(scores, 3);
    const at::Tensor types = chosen + (shares - shares.detach());
    return all_scores_ ? types : types * types.detach();  // the type that was not chosen has no gradient
}

at::Tensor NatslMixer::softmax(const Read& read, const at::Tensor& types, const StackContext& context,
                               NatslCache* cache) const {
    if (cache && !cache->softmax.empty()) {
        if (context.probe && context.probe->request(context.site)) {
            throw Error(ErrorCode::unsupported, "natsl", "expected a text that is measured whole",
                        "found a cache, which lacks the keys of linear chunks");
        }
        const at::Tensor output = continued(read, types, context, *cache, true);
        return finish_attention(output, {read.query, read.key, read.value, rule_}, nullptr, context.site, context);
    }
    kernels::ScoreRule rule = rule_;
    if (context.lengths) rule.query_length = rule.key_length = *context.lengths;
    RuleTensors tensors;
    if (types.size(2) > 1 || !softmax_inside_) {
        tensors.blocks = types.select(3, 0).repeat_interleave(group_, 1);
        tensors.hidden_blocks = all_scores_;
        const at::Tensor seen = model::on_processor(tensors.blocks.detach().to(at::kByte)).contiguous();
        const auto* flags = seen.const_data_ptr<std::uint8_t>();
        rule.blocks = {chunk_, types.size(2), {flags, flags + seen.numel()}, softmax_inside_};
    }
    const at::Tensor output = attend(read.query, read.key, read.value, rule, context.site, context, tensors);
    if (cache) continued(read, types, context, *cache, false);
    return output;
}

at::Tensor NatslMixer::continued(const Read& read, const at::Tensor& types, const StackContext& context,
                                 NatslCache& cache, bool attends) const {
    const std::int64_t batch = read.key.size(0), length = read.key.size(2), linear_heads = parts_.sizes().heads;
    cache.softmax.resize(static_cast<std::size_t>(batch * linear_heads));
    StackContext part = context;  // heads are announced and edited all together
    part.probe = nullptr;
    part.editor = nullptr;
    const at::Tensor seen = model::on_processor(types.detach().select(3, 0).to(at::kBool));
    std::vector<at::Tensor> pieces;
    std::int64_t open = cache.linear.state.open, chunk = 0;
    for (std::int64_t first = 0; first < length; ++chunk, open = 0) {
        if (context.cancellation) context.cancellation->check();
        const std::int64_t count = std::min(length - first, chunk_ - open);
        std::vector<at::Tensor> rows;
        for (std::int64_t b = 0; b < batch; ++b) {
            std::vector<at::Tensor> heads;
            for (std::int64_t h = 0; h < linear_heads; ++h) {
                const auto own = [&](const at::Tensor& all) {
                    return all.narrow(0, b, 1).narrow(1, h * group_, group_).narrow(2, first, count);
                };
                KeyValueCache& held = cache.softmax[static_cast<std::size_t>(b * linear_heads + h)];
                const std::int64_t before = held.held();
                held.append(own(read.key), own(read.value));
                if (attends) {
                    kernels::ScoreRule rule = rule_;
                    rule.query_offset = before;
                    const std::int64_t keys = softmax_inside_ ? before + count : before - open;
                    heads.push_back(keys == 0 ? at::zeros({1, count, group_ * read.value.size(3)}, read.value.options())
                                              : attend(own(read.query), held.key().narrow(2, 0, keys),
                                                       held.value().narrow(2, 0, keys), rule, context.site, part));
                }
                if (open + count == chunk_ && !seen[b][h][chunk].item<bool>()) held.drop(chunk_);
            }
            if (attends) rows.push_back(at::cat(heads, 2));
        }
        if (attends) pieces.push_back(at::cat(rows, 0));
        first += count;
    }
    return attends ? at::cat(pieces, 1) : at::Tensor();
}

at::Tensor NatslMixer::linear(const at::Tensor& normed, const Read& read, const at::Tensor& types,
                              const StackContext& context, NatslCache* cache) const {
    const SiteIndex site(context.site.value + 1);
    Recurrence what;
    what.query = unit_length(context.edited(model::Point::query, read.linear.query, site));
    what.key = unit_length(context.edited(model::Point::key, read.linear.key, site));
    what.value = context.edited(model::Point::value, read.linear.value, site);
    const DeltaParts::Rates rates = parts_.rates(normed);
    what.write = rates.write;
    what.log_decay = rates.log_decay;
    what.kept = types.select(3, 1);
    what.dropped_too = all_scores_;
    what.rule.scale = 1.0 / std::sqrt(static_cast<double>(parts_.sizes().key_size));
    what.rule.chunk_size = chunk_;
    what.rule.decays_dropped = decays_softmax_;
    what.rule.reads_own_chunk = linear_inside_;
    return recur(what, cache ? &cache->linear.state : nullptr, site, context);
}

at::Tensor NatslMixer::forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const {
    auto* held = cache ? &dynamic_cast<NatslCache&>(*cache) : nullptr;
    StackContext own = context;
    own.output_projection = nullptr;  // norms and the gate lie between
    const Read both = read(normed, own, held ? &held->linear.before : nullptr);
    const at::Tensor inputs = held && held->inputs.defined() ? at::cat({held->inputs, normed}, 1) : normed;
    const at::Tensor chosen = types(inputs, own);
    // Announced before the branches' own values: those complete a site.
    at::Tensor shares;
    if (weights_ != "none") {
        const at::Tensor source = weights_ == "query" ? both.linear.query.transpose(1, 2).flatten(2) : normed;
        shares = at::softmax(at_least_float(weight_(source)).unflatten(2, {heads_, 2}), 3);
        own.announce("branch_weights", shares.transpose(1, 2));
    } else if (own.wants("branch_weights")) {
        own.announce("branch_weights", at::ones({normed.size(0), heads_, normed.size(1), 2}, normed.options()));
    }
    const at::Tensor by_softmax = softmax(both, chosen, own, held).unflatten(2, {heads_, -1});
    const at::Tensor by_state = linear(normed, both, chosen, own, held).unflatten(2, {heads_, -1});
    if (held) {
        const std::int64_t open = inputs.size(1) % chunk_;
        held->inputs = inputs.narrow(1, inputs.size(1) - open, open).clone();
    }
    const auto weighed = [&](const at::Tensor& x, std::int64_t branch) {
        return shares.defined() ? x * shares.narrow(3, branch, 1).to(x.scalar_type()) : x;
    };
    const at::Tensor mixed = one_norm_ ? linear_norm_(weighed(by_state, 0) + weighed(by_softmax, 1))
                                       : weighed(linear_norm_(by_state), 0) + weighed(softmax_norm_(by_softmax), 1);
    return mixed.flatten(2) * parts_.gate(normed, context.cancellation);
}

std::unique_ptr<MixerCache> NatslMixer::new_cache() const {
    return std::make_unique<NatslCache>();
}

std::unique_ptr<Mixer> make_natsl(const MixerType&, const model::ModelConfig& config, std::int64_t layer) {
    return std::make_unique<NatslMixer>(config, layer);
}

}  // namespace headscope::mixers

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/towers/tower.h"

#include <cmath>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include "core/mixers/shared/no_cache.h"
#include "core/mixers/shared/tensor_views.h"
#include "core/model/device.h"
#include "core/model/load/layer_weights.h"
#include "core/model/random_fill.h"
#include "core/model/training_forward.h"

namespace headscope::model {

std::vector<const Layer*> Tower::layers() const {
    std::vector<const Layer*> list;
    for (const std::size_t index : order_) list.push_back(&layers_[index]);
    return list;
}

void Tower::enter(std::size_t number, PassSize size, const Cancellation* cancellation) const {
    if (weights_) weights_->enter(place_.first_layer + static_cast<std::int64_t>(order_[number]), size, cancellation);
}

void Tower::enter_feed_forward(const Cancellation* cancellation) const {
    if (weights_) weights_->enter_feed_forward(cancellation);
}

void Tower::Rotation::enter(mixers::StackContext& context) const {
    context.rotary = rotary;
    context.rotation = rotary ? &here : nullptr;
    context.history_rotation = history.cosine.defined() ? &history : nullptr;
}

Tower::Rotation Tower::rotation(const std::optional<Rotary>& rotary, std::int64_t held, std::int64_t length,
                                bool cached) const {
    Rotation rotation;
    if (!rotary) return rotation;
    const at::ScalarType type = embedding_.type();
    rotation.rotary = &*rotary;
    const auto table = [&](std::int64_t first, std::int64_t count) {
        const RotaryTable made = rotary->table(first, count, type);
        return RotaryTable{on_device(made.cosine, device_), on_device(made.sine, device_)};
    };
    rotation.here = table(held, length);
    if (cached && rotary->depends_on_length()) rotation.history = table(0, held + length);
    return rotation;
}

void Tower::enter_bias(const at::Tensor& table, kernels::ScoreRule& bias, mixers::StackContext& context,
                       bool recorded) const {
    const at::Tensor plain = on_processor(table.narrow(0, 0, config_->distance_buckets)).to(at::kFloat).contiguous();
    kernels::set_bucketed_bias(bias, {plain.const_data_ptr<float>(), static_cast<std::size_t>(plain.numel())},
                               plain.size(0), plain.size(1), config_->farthest_bucket, !config_->causal, 0, 0);
    context.shared_bias = &bias;
    if (!recorded) return;
    const auto columns = kernels::bucket_columns(config_->distance_buckets, config_->farthest_bucket, !config_->causal);
    context.shared_bias_table =
        table.index_select(0, at::tensor(columns, table.options().dtype(at::kLong))).t().contiguous();
}

const Rotary* Tower::rotary_of(std::int64_t layer) const {
    const auto number = static_cast<std::size_t>(layer);
    if (const auto own = own_rotary_.find(layer); own != own_rotary_.end())
        return own->second ? &*own->second : nullptr;
    if (!config_->rotary_layers.empty() && config_->rotary_layers.at(number) == 0) return nullptr;
    if (window_rotary_ && config_->windows.at(number) > 0) return &*window_rotary_;
    return rotary_ ? &*rotary_ : nullptr;
}

at::Tensor Tower::embedding_for(const Layer& layer, const at::Tensor& embedding) const {
    if (layer.source() != mixers::QueryKeySource::embedding) return {};
    return config_->pre_norm ? layer.input_norm(embedding) : embedding;
}

void Tower::add_caches(std::vector<std::unique_ptr<mixers::MixerCache>>& caches) const {
    for (const Layer* layer : layers()) {
        caches.push_back(layer->mixer ? layer->mixer->new_cache() : std::make_unique<mixers::NoCache>());
        if (layer->cross) caches.push_back(layer->cross->new_cache());
    }
}

void Tower::add_mixers(std::vector<std::string>& names) const {
    for (const Layer* layer : layers()) names.push_back(layer->mixer ? layer->mixer->name() : kNoMixer);
}

at::Tensor Tower::dropped(const at::Tensor& x, const mixers::StackContext& context, std::string_view where) {
    if (!context.training || context.training->dropout <= 0) return x;
    const std::string place = std::to_string(context.layer.value) + std::string(where);
    const std::int64_t first = context.training->first_sequence * (x.numel() / x.size(0));
    return drop(x, context.training->dropout, random_key(context.training->dropout_seed, place), first);
}

at::Tensor Tower::at_position(const at::Tensor& x, std::int64_t position) {
    return position < 0 ? x : x.narrow(1, position, 1).contiguous();
}

at::Tensor Tower::add_cross(const Layer& layer, const at::Tensor& hidden, mixers::StackContext context,
                            mixers::MixerCache* cache) const {
    if (context.cancellation) context.cancellation->check();
    context.site = SiteIndex(context.site.value + static_cast<std::int64_t>(layer.mixer->sites().size()));
    context.output_projection = &layer.cross_output.weight;
    const at::Tensor read = config_->pre_norm ? layer.cross_norm(hidden) : hidden;
    context.announce("cross_input_norm", read);
    const at::Tensor heads = context.edited(Point::mixer_output, layer.cross->forward(read, context, cache));
    at::Tensor update = layer.cross_output(heads, context.cancellation);
    context.announce("cross_output", update);
    update = context.edited(Point::attention_output, update);
    const at::Tensor sum = hidden + dropped(update, context, "cross_attention");
    return config_->pre_norm ? sum : layer.cross_norm(sum);
}

at::Tensor Tower::add(const at::Tensor& residual, const at::Tensor& update, const Norm& norm,
                      const SumFactors& factors) const {
    const at::Tensor sum = (factors.kept == 1 ? residual : residual * factors.kept) + update;
    return config_->pre_norm ? sum : norm(sum);
}

at::Tensor Tower::scaled(const at::Tensor& update, const SumFactors& factors) const {
    const double scale = config_->update_scale * factors.added;
    return scale == 1 ? update : update * scale;
}

at::Tensor Tower::stored_heads(const Layer& layer, const mixers::StackContext& context,
                               const mixers::MixerCache* cache) {
    const bool may_store = context.editor && !context.probe && !context.training && !cache;
    if (!may_store || !layer.mixer->returns_heads()) return {};
    return context.editor->stored_heads({Point::head_output, context.layer.value, context.site.value});
}

at::Tensor Tower::output_of_stored(const Layer& layer, const at::Tensor& read, const mixers::StackContext& context,
                                   const mixers::MixerCache* cache) {
    const at::Tensor& weight = layer.output.weight;
    const std::int64_t rows = read.size(0);
    // Sums of rounded bfloat16 would be rounded twice.
    if (rows < 2 || !weight.defined() || weight.scalar_type() != at::kFloat || read.scalar_type() != at::kFloat ||
        !context.edits(Point::head_output) || context.edits(Point::mixer_output))
        return {};
    const std::vector<std::int64_t> changed =
        context.editor->changed_heads({Point::head_output, context.layer.value, context.site.value});
    if (std::ssize(changed) != rows) return {};
    const at::Tensor stored = stored_heads(layer, context, cache);
    // A change from a number that is not finite would be none.
    if (!stored.defined() || stored.size(0) != 1 || !std::isfinite(stored.sum().item<double>())) return {};
    const at::Tensor own = on_device(stored, read.device());
    const at::Tensor heads = context.edited(Point::head_output, own.expand({rows, -1, -1, -1}));
    const at::Tensor output = layer.output(mixers::side_by_side(own), context.cancellation).repeat({rows, 1, 1});
    const std::int64_t size = own.size(3);
    for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t head = changed[static_cast<std::size_t>(row)];
        if (head < 0) continue;
        const at::Tensor change = heads[row][head] - own[0][head];
        output[row].addmm_(change, weight.narrow(1, head * size, size).t());
    }
    return output;
}

at::Tensor Tower::run_mixer(const Layer& layer, const at::Tensor& read, const mixers::StackContext& context,
                            mixers::MixerCache* cache) const {
    if (const at::Tensor stored = stored_heads(layer, context, cache); stored.defined()) {
        const at::Tensor heads = on_device(stored, read.device()).expand({read.size(0), -1, -1, -1});
        return mixers::side_by_side(context.edited(Point::head_output, heads));
    }
    return layer.mixer->forward(read, context, cache);
}

Tower::Halfway Tower::mix(const Layer& layer, const at::Tensor& entering, const mixers::StackContext& context,
                          const LayerCaches& caches, std::int64_t position) const {
    at::Tensor hidden = entering;
    at::Tensor read = config_->pre_norm ? layer.input_norm(hidden) : hidden;
    at::Tensor mixed;
    if (layer.mixer) {
        context.announce("input_norm", read);
        at::Tensor attention = position < 0 ? output_of_stored(layer, read, context, caches.own) : at::Tensor();
        if (!attention.defined()) {
            attention = context.pass(Point::mixer_output, run_mixer(layer, read, context, caches.own));
            // From here on no position reads another.
            if (attention.size(1) == read.size(1)) attention = at_position(attention, position);
            if (layer.output.there()) attention = layer.output(attention, context.cancellation);
        }
        attention = scaled(layer.attention_update_norm(attention), layer.attention_sum);
        attention = context.pass(Point::attention_output, attention);
        mixed = dropped(attention, context, "attention");
    }
    hidden = at_position(hidden, position);
    read = at_position(read, position);
    if (config_->parallel_residual) return {hidden, read, mixed};
    at::Tensor middle =
        layer.mixer ? add(config_->residual_after_norm ? read : hidden, mixed, layer.input_norm, layer.attention_sum)
                    : hidden;
    if (layer.cross) middle = add_cross(layer, middle, context, caches.cross);
    return {middle, {}, {}};
}

at::Tensor Tower::feed_forward(const Layer& layer, const Halfway& half, const mixers::StackContext& context) const {
    const auto update_of = [&](const at::Tensor& input) {
        if (context.cancellation) context.cancellation->check();
        const bool routed = layer.feed_forward.experts.per_token > 0 && context.wants("expert_index");
        Routing taken;
        at::Tensor update = scaled(
            layer.feed_forward_update_norm(layer.feed_forward(input, context.cancellation, routed ? &taken : nullptr)),
            config_->feed_forward_sum);
        if (routed) {
            context.announce("expert_index", taken.chosen);
            context.announce("expert_weight", taken.shares);
        }
        update = context.pass(Point::feed_forward_output, update);
        return dropped(update, context, "feed_forward");
    };
    if (config_->parallel_residual) {
        const bool own_norm = layer.feed_forward_norm.weight.defined();
        return update_of(own_norm ? layer.feed_forward_norm(half.residual) : half.read) + half.mixed + half.residual;
    }
    at::Tensor middle = half.residual;
    if (!layer.has_feed_forward) return middle;
    if (layer.mixer) middle = context.edited(Point::residual_middle, middle);
    const bool pre_norm = config_->pre_norm, after_norm = config_->residual_after_norm;
    const at::Tensor entering = pre_norm ? context.edited(Point::feed_forward_input, middle) : middle;
    const at::Tensor input = pre_norm ? layer.feed_forward_norm(entering) : middle;
    const at::Tensor kept = !after_norm ? middle : entering.is_same(middle) ? input : layer.feed_forward_norm(middle);
    return add(kept, update_of(input), layer.feed_forward_norm, config_->feed_forward_sum);
}

}  // namespace headscope::model

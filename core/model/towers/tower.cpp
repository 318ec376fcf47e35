// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/towers/tower.h"

#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include "core/mixers/shared/no_cache.h"
#include "core/model/device.h"
#include "core/model/load/layer_weights.h"
#include "core/model/load/tensor_plan.h"
#include "core/model/random_fill.h"
#include "core/model/training_forward.h"

namespace headscope::model {

void Tower::declare(TensorPlan& plan, TensorNames names, TowerPlace place, std::vector<Site>& sites) {
    config_ = &plan.config();
    place_ = std::move(place);
    const Dimension hidden{config_->hidden, names.keys.hidden};
    embedding_.declare(plan, names);
    if (config_->positions == PositionKind::rotary)
        rotary_.emplace(config_->rope, config_->head_size, config_->max_positions);
    if (rotary_) rotary_->declare(plan, names);
    for (const auto& [number, own] : config_->layer_heads) {
        const ModelConfig layer = config_->of_layer(number);
        own_rotary_.try_emplace(number).first->second.emplace(layer.rope, layer.head_size, layer.max_positions);
    }
    if (config_->window_rope) window_rotary_.emplace(*config_->window_rope, config_->head_size, config_->max_positions);
    if (!names.bucket_bias.empty()) declare_bias(plan, &bucket_bias_, names.prefix + names.bucket_bias, names.keys);
    const std::vector<std::int64_t>& shared = config_->shared_layers;
    layers_.resize(shared.empty() ? static_cast<std::size_t>(config_->layers) : names.listed_layers.size());
    for (std::size_t number = 0; number < layers_.size(); ++number) {
        names.layer_stem = names.prefix + (shared.empty() ? numbered(names.layer, static_cast<std::int64_t>(number))
                                                          : names.listed_layers[number]);
        TensorNames own = names;
        const auto of_mixer = names.of_mixer.find(config_->mixers.at(number));
        if (of_mixer != names.of_mixer.end()) own.in_layer = of_mixer->second;
        for (const LayerNames& other : std::vector<LayerNames>(own.in_layer.others)) {
            if (!plan.from_file() || !plan.has(own.layer_stem + other.sign)) continue;
            own.in_layer = other;
            break;
        }
        const std::size_t first = plan.wants().size();
        declare_layer(plan, own, static_cast<std::int64_t>(number));
        plan.assign_to_layer(place_.first_layer + static_cast<std::int64_t>(number), first);
    }
    for (std::int64_t number = 0; number < config_->layers; ++number) {
        const auto index = static_cast<std::size_t>(number);
        order_.push_back(shared.empty() ? index : static_cast<std::size_t>(shared.at(index)));
        first_sites_.push_back(static_cast<std::int64_t>(sites.size()));
        const Layer& layer = layers_[order_.back()];
        if (layer.mixer) add_sites(*layer.mixer, number, sites);
        if (layer.cross) add_sites(*layer.cross, number, sites);
    }
    declare_guides(plan, names);
    if (config_->final_norm) final_norm_.declare(plan, names.prefix + names.final_norm, hidden, names.old_norm_names);
}

void Tower::add_sites(const mixers::Mixer& mixer, std::int64_t number, std::vector<Site>& sites) const {
    for (Site site : mixer.sites()) {
        site.layer = static_cast<std::int32_t>(place_.first_layer + number);
        site.stack = place_.stack;
        site.query_stream = place_.stream;
        site.key_stream = site.is_cross() ? place_.memory_stream : place_.stream;
        sites.push_back(site);
    }
}

void Tower::declare_layer(TensorPlan& plan, const TensorNames& names, std::int64_t number) {
    const Dimension hidden{config_->hidden, names.keys.hidden};
    Layer& layer = layers_[static_cast<std::size_t>(number)];
    const auto norm = [&](Norm& into, const std::string& name) {
        if (!name.empty()) into.declare(plan, names.layer_stem + name, hidden, names.old_norm_names);
    };
    if (const std::string& mixer = config_->mixers.at(static_cast<std::size_t>(number)); mixer != kNoMixer) {
        // Only mixers of softmax attention have heads of their own there.
        layer.mixer = config_->layer_heads.contains(number)
                          ? mixers::make_mixer(mixer, config_->of_layer(number), number)
                          : mixers::make_mixer(mixer, *config_, number);
        if (number > 0 || config_->first_input_norm) norm(layer.input_norm, names.in_layer.input_norm);
        std::size_t first = plan.wants().size();
        layer.mixer->declare(plan, names);
        plan.count_as(TensorPlan::Part::attention, first);
        const std::string& value_size = config_->value_size > 0 ? names.keys.value_size : names.keys.head_size;
        if (!names.in_layer.bucket_bias.empty())
            declare_bias(plan, &layer.bucket_bias, names.layer_stem + names.in_layer.bucket_bias, names.keys);
        if (!names.in_layer.output.empty()) {
            first = plan.wants().size();
            layer.output.declare_for_products(plan, names.layer_stem + names.in_layer.output, hidden,
                                              {layer.mixer->output_size(), names.keys.heads + " * " + value_size},
                                              config_->output_bias && !names.in_layer.plain_output);
            plan.count_as(TensorPlan::Part::attention, first);
        }
        norm(layer.attention_update_norm, names.in_layer.attention_update_norm);
    }
    if (!config_->attention_sums.empty())
        layer.attention_sum = config_->attention_sums.at(static_cast<std::size_t>(number));
    if (config_->encoder) {
        layer.cross = mixers::make_cross_mixer(config_->mixers.at(static_cast<std::size_t>(number)), *config_);
        norm(layer.cross_norm, names.in_layer.cross_norm);
        const std::size_t first = plan.wants().size();
        layer.cross->declare(plan, names);
        layer.cross_output.declare(plan, names.layer_stem + names.in_layer.cross_output, hidden,
                                   {layer.cross->output_size(), names.keys.heads + " * " + names.keys.head_size},
                                   config_->output_bias);
        plan.count_as(TensorPlan::Part::attention, first);
    }
    layer.has_feed_forward = config_->has_feed_forward(number);
    if (!layer.has_feed_forward) return;
    norm(layer.feed_forward_norm, names.in_layer.feed_forward_norm);
    const std::size_t first = plan.wants().size();
    layer.feed_forward.declare(plan, names, number);
    if (runs_in_steps()) plan.use_after_mixer(first);
    norm(layer.feed_forward_update_norm, names.in_layer.feed_forward_update_norm);
}

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

void Tower::declare_bias(TensorPlan& plan, at::Tensor* into, const std::string& name, const SizeKeys& keys) const {
    const std::int64_t rows = config_->bucket_rows > 0 ? config_->bucket_rows : config_->distance_buckets;
    plan.want(into, {name + ".weight"}, {{rows, keys.distance_buckets}, {config_->heads, keys.heads}});
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

Tower::Halfway Tower::mix(const Layer& layer, const at::Tensor& hidden, const mixers::StackContext& context,
                          const LayerCaches& caches) const {
    const at::Tensor read = config_->pre_norm ? layer.input_norm(hidden) : hidden;
    at::Tensor mixed;
    if (layer.mixer) {
        context.announce("input_norm", read);
        at::Tensor attention = layer.mixer->forward(read, context, caches.own);
        attention = context.pass(Point::mixer_output, attention);
        if (layer.output.there()) attention = layer.output(attention, context.cancellation);
        attention = scaled(layer.attention_update_norm(attention), layer.attention_sum);
        attention = context.pass(Point::attention_output, attention);
        mixed = dropped(attention, context, "attention");
    }
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

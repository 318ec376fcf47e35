// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/tower.h"

#include <ATen/TensorOperators.h>

#include "core/model/cache.h"
#include "core/model/tensor_plan.h"

namespace headscope::model {
namespace {

constexpr LayerIndex kNoLayer{-1};

void announce(Probe* probe, std::string_view name, LayerIndex layer, const at::Tensor& value) {
    if (probe && probe->wants(name, layer)) probe->announce(name, layer, value);
}

std::string numbered(const std::string& pattern, std::int64_t layer) {
    std::string name = pattern;
    return name.replace(name.find("{}"), 2, std::to_string(layer));
}

}  // namespace

void Tower::declare(TensorPlan& plan, TensorNames names, std::int64_t first_layer, std::vector<Site>& sites) {
    config_ = &plan.config();
    first_layer_ = first_layer;
    const Dimension hidden{config_->hidden, names.keys.hidden};
    embedding_.declare(plan, names);
    if (config_->positions == PositionKind::rotary)
        rotary_.emplace(config_->rope, config_->head_size, config_->max_positions);
    layers_.resize(static_cast<std::size_t>(config_->layers));
    for (std::int64_t number = 0; number < config_->layers; ++number) {
        Layer& layer = layers_[static_cast<std::size_t>(number)];
        names.layer_stem = names.prefix + numbered(names.layer, number);
        const auto norm = [&](Norm& into, const std::string& name) {
            if (!name.empty()) into.declare(plan, names.layer_stem + name, hidden, names.old_norm_names);
        };
        layer.mixer = mixers::make_mixer(config_->mixers.at(static_cast<std::size_t>(number)), *config_, number);
        layer.first_site = static_cast<std::int64_t>(sites.size());
        for (Site site : layer.mixer->sites()) {
            site.layer = static_cast<std::int32_t>(first_layer + number);
            sites.push_back(site);
        }
        norm(layer.input_norm, names.in_layer.input_norm);
        layer.mixer->declare(plan, names);
        layer.output.declare(plan, names.layer_stem + names.in_layer.output, hidden,
                             {layer.mixer->output_size(), names.keys.heads + " * " + names.keys.head_size},
                             config_->output_bias);
        norm(layer.attention_update_norm, names.in_layer.attention_update_norm);
        norm(layer.feed_forward_norm, names.in_layer.feed_forward_norm);
        layer.feed_forward.declare(plan, names);
        norm(layer.feed_forward_update_norm, names.in_layer.feed_forward_update_norm);
    }
    if (config_->final_norm) final_norm_.declare(plan, names.prefix + names.final_norm, hidden, names.old_norm_names);
}

at::Tensor Tower::run(const Batch& batch, const ForwardOptions& options, mixers::StackContext context) const {
    const std::int64_t held = options.cache ? options.cache->length() : 0;
    const std::int64_t length = batch.ids.size(1);
    context.first_position = held;
    RotaryTable rotation, history;
    if (rotary_) {
        const at::ScalarType type = embedding_.tokens.scalar_type();
        rotation = rotary_->table(held, length, type);
        context.rotary = &*rotary_;
        context.rotation = &rotation;
        if (options.cache && rotary_->depends_on_length()) {
            history = rotary_->table(0, held + length, type);
            context.history_rotation = &history;
        }
    }

    at::Tensor hidden = embedding_(batch, held);
    context.input_embedding = hidden;
    announce(options.probe, "embedding", kNoLayer, hidden);
    for (std::size_t number = 0; number < layers_.size(); ++number) {
        if (options.cancellation) options.cancellation->check();
        context.layer = LayerIndex(first_layer_ + static_cast<std::int64_t>(number));
        context.site = SiteIndex(layers_[number].first_site);
        const auto counted = static_cast<int>(context.layer.value);
        if (options.skip_layers.count(counted) == 0) {
            mixers::MixerCache* cache = options.cache ? &options.cache->layer(number) : nullptr;
            hidden = run_layer(layers_[number], hidden, context, cache);
            announce(options.probe, "hidden", context.layer, hidden);
        }
        if (options.after_layer) options.after_layer(counted);
    }
    hidden = final_norm_(hidden);
    announce(options.probe, "final_norm", kNoLayer, hidden);
    return hidden;
}

at::Tensor Tower::run_layer(const Layer& layer, const at::Tensor& hidden, const mixers::StackContext& context,
                            mixers::MixerCache* cache) const {
    const bool pre_norm = config_->pre_norm;
    const auto add = [pre_norm](const at::Tensor& residual, const at::Tensor& update, const Norm& norm) {
        const at::Tensor sum = residual + update;
        return pre_norm ? sum : norm(sum);
    };
    const at::Tensor read = pre_norm ? layer.input_norm(hidden) : hidden;
    context.announce("input_norm", read);
    const at::Tensor attention =
        layer.attention_update_norm(layer.output(layer.mixer->forward(read, context, cache), context.cancellation));
    context.announce("attention_output", attention);
    const at::Tensor middle = add(hidden, attention, layer.input_norm);

    if (context.cancellation) context.cancellation->check();
    const at::Tensor update = layer.feed_forward_update_norm(
        layer.feed_forward(pre_norm ? layer.feed_forward_norm(middle) : middle, context.cancellation));
    context.announce("feed_forward_output", update);
    return add(middle, update, layer.feed_forward_norm);
}

}  // namespace headscope::model

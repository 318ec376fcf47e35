// SPDX-License-Identifier: GPL-3.0-or-later
// The tensors of a tower, and its sites.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/model/load/tensor_plan.h"
#include "core/model/towers/tower.h"

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

void Tower::declare_bias(TensorPlan& plan, at::Tensor* into, const std::string& name, const SizeKeys& keys) const {
    const std::int64_t rows = config_->bucket_rows > 0 ? config_->bucket_rows : config_->distance_buckets;
    plan.want(into, {name + ".weight"}, {{rows, keys.distance_buckets}, {config_->heads, keys.heads}});
}

}  // namespace headscope::model

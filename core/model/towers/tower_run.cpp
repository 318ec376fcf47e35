// SPDX-License-Identifier: GPL-3.0-or-later
// Passes through a tower. All pass a layer before the next, and their hidden states wait while others run.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/model/load/packed_matrix.h"
#include "core/model/towers/cache.h"
#include "core/model/towers/tower.h"

namespace headscope::model {
namespace {

constexpr LayerIndex kNoLayer{-1};

void announce(Probe* probe, std::string_view name, LayerIndex layer, const at::Tensor& value) {
    if (probe && probe->wants(name, layer)) probe->announce(name, layer, value);
}

/// A probe that measures an attention may read the map behind it (AttentionRecord::output_projection).
bool measures(Probe& probe, const std::vector<Site>& sites) {
    for (std::size_t i = 0; i < sites.size(); ++i) {
        const SiteIndex site(static_cast<std::int64_t>(i));
        if (probe.request(site) || probe.implicit_request(site) != Probe::Implicit::nothing) return true;
    }
    return false;
}

PassSize size_of(const std::vector<Tower::Start>& starts) {
    const bool few = std::all_of(starts.begin(), starts.end(), [](const Tower::Start& start) {
        return start.batch->ids.numel() <= kFewTokens &&
               !(start.options->probe && measures(*start.options->probe, *start.context.sites));
    });
    if (few) return PassSize::few;
    const bool many = std::any_of(starts.begin(), starts.end(),
                                  [](const Tower::Start& start) { return start.batch->ids.numel() >= kManyTokens; });
    return many ? PassSize::many : PassSize::some;
}

}  // namespace

/// Contexts point into it: it stays where it is.
struct Tower::Pass {
    Pass(const Start& start, WaitingTensors& tensors)
        : options(*start.options), context(start.context), memory(start.memory), waiting(tensors) {}
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

    const ForwardOptions& options;
    mixers::StackContext context;
    const WaitingTensors::Slot* memory;  ///< null: no cross-attention reads it
    WaitingTensors& waiting;
    std::int64_t length = 0;  ///< tokens of this call
    Rotation anywhere, in_windows, nowhere;
    std::map<std::int64_t, Rotation> own;
    bool rotates = false;  ///< the rotations are made
    kernels::ScoreRule bias;
    at::Tensor hidden;
    Halfway half;
    WaitingTensors::Slot state;      ///< of `hidden` or, halfway through a layer, its residual
    WaitingTensors::Slot embedding;  ///< empty where no mixer reads it
    bool halfway = false;
    std::vector<mixers::GuideMaps> recorded;
    const std::vector<mixers::GuideMaps>* guides = nullptr;
    std::size_t next_cache = 0;
    bool has_one_position = false;  ///< `half` and `hidden` are those of ForwardOptions::only_position

    mixers::MixerCache* take_cache() { return options.cache ? &options.cache->layer(next_cache++) : nullptr; }
    void leave_caches() {
        if (options.cache) options.cache->leave(next_cache);
    }
    /// The layer of the context.
    bool skips() const { return options.skip_layers.contains(static_cast<int>(context.layer.value)); }

    /// Other passes run.
    void wait() {
        context.memory = context.input_embedding = at::Tensor();
        halfway = half.residual.defined();
        waiting.put(state, std::exchange(halfway ? half.residual : hidden, at::Tensor()));
        if (!state.in_file()) return;
        // Tables of positions are as long as the text.
        anywhere = in_windows = Rotation();
        own.clear();
        rotates = false;
    }
    void resume() { (halfway ? half.residual : hidden) = waiting.take(state); }
};

void Tower::begin(Pass& pass, const Batch& batch) const {
    const ForwardOptions& options = pass.options;
    mixers::StackContext& context = pass.context;
    const std::int64_t held = options.cache ? options.cache->length() : 0;
    pass.length = batch.ids.size(1);
    context.first_position = held;
    if (bucket_bias_.defined()) enter_bias(bucket_bias_, pass.bias, context, options.training != nullptr);

    pass.hidden = embedding_(batch, held, options.training);
    context.training = options.training;
    pass.hidden = dropped(pass.hidden, context, is_encoder() ? "encoder embedding" : "embedding");
    if (reads_guides_ && options.training) {
        pass.recorded = run_guides(pass.length, options, context);
        pass.guides = &pass.recorded;
    } else if (reads_guides_) {
        pass.guides = &kept_guides(held + pass.length, options, context);
    }
    announce(options.probe, end_prefix() + "embedding", kNoLayer, pass.hidden);
    if (!is_encoder()) pass.hidden = context.edited(Point::embedding, pass.hidden);
    const bool is_read = std::any_of(layers_.begin(), layers_.end(), [](const Layer& layer) {
        return layer.source() == mixers::QueryKeySource::embedding;
    });
    if (is_read) pass.waiting.put(pass.embedding, pass.hidden);
}

void Tower::make_rotations(Pass& pass) const {
    if (std::exchange(pass.rotates, true)) return;
    const bool cached = pass.options.cache != nullptr;
    const std::int64_t held = pass.context.first_position;
    pass.anywhere = rotation(rotary_, held, pass.length, cached);
    pass.in_windows = rotation(window_rotary_, held, pass.length, cached);
    for (const auto& [number, rotary] : own_rotary_) pass.own[number] = rotation(rotary, held, pass.length, cached);
}

void Tower::run_mixers(Pass& pass, std::size_t number, PassSize size) const {
    const ForwardOptions& options = pass.options;
    mixers::StackContext& context = pass.context;
    if (options.cancellation) options.cancellation->check();
    context.layer = LayerIndex(place_.first_layer + static_cast<std::int64_t>(number));
    context.site = SiteIndex(first_sites_[number]);
    make_rotations(pass);
    const bool turns = config_->rotary_layers.empty() || config_->rotary_layers.at(number) != 0;
    const bool in_window = pass.in_windows.rotary && config_->windows.at(number) > 0;
    const auto in_layer = pass.own.find(static_cast<std::int64_t>(number));
    if (in_layer != pass.own.end())
        in_layer->second.enter(context);
    else
        (!turns ? pass.nowhere : in_window ? pass.in_windows : pass.anywhere).enter(context);
    if (!pass.skips()) enter(number, size, options.cancellation);
    const Layer& layer = layers_[order_[number]];
    LayerCaches caches{pass.take_cache(), nullptr};
    if (layer.cross) caches.cross = pass.take_cache();
    context.guide = pass.guides ? &(*pass.guides)[number] : nullptr;
    if (layer.bucket_bias.defined()) enter_bias(layer.bucket_bias, pass.bias, context, options.training != nullptr);
    context.output_projection = layer.output.weight.defined() ? &layer.output.weight : nullptr;
    if (pass.skips()) return;
    if (layer.source() == mixers::QueryKeySource::embedding)
        context.input_embedding = embedding_for(layer, pass.waiting.read(pass.embedding));
    if (layer.cross && pass.memory) context.memory = pass.waiting.read(*pass.memory);
    const std::int64_t position = only_position(pass, number);
    context.only_position = position >= 0 && mixes_one_position(layer, context) ? position : -1;
    pass.half = mix(layer, context.edited(Point::residual_before, pass.hidden), context, caches, position);
    pass.leave_caches();
    pass.has_one_position = position >= 0;
    pass.hidden = at::Tensor();
}

std::int64_t Tower::only_position(const Pass& pass, std::size_t number) const {
    if (is_encoder() || number + 1 != order_.size() || layers_[order_[number]].cross) return -1;
    for (const Point point : {Point::attention_output, Point::residual_middle, Point::feed_forward_input,
                              Point::feed_forward_output, Point::hidden, Point::final_norm})
        if (pass.context.edits(point)) return -1;
    return pass.options.only_position;
}

bool Tower::mixes_one_position(const Layer& layer, const mixers::StackContext& context) {
    if (!layer.mixer || !layer.mixer->returns_one_position() || context.lengths) return false;
    constexpr std::array points{Point::query, Point::scores, Point::pattern, Point::head_output, Point::mixer_output};
    return std::none_of(points.begin(), points.end(), [&](Point point) { return context.edits(point); });
}

void Tower::run_feed_forward(Pass& pass, std::size_t number) const {
    const ForwardOptions& options = pass.options;
    if (!pass.skips()) {
        enter_feed_forward(options.cancellation);
        pass.hidden = feed_forward(layers_[order_[number]], std::exchange(pass.half, {}), pass.context);
        pass.hidden = pass.context.pass(Point::hidden, pass.hidden);
    }
    if (options.after_layer) options.after_layer(static_cast<int>(pass.context.layer.value));
}

at::Tensor Tower::end(Pass& pass) const {
    const at::Tensor hidden = final_norm_(pass.hidden);
    announce(pass.options.probe, end_prefix() + "final_norm", kNoLayer, hidden);
    if (is_encoder()) return hidden;
    const at::Tensor edited = pass.context.edited(Point::final_norm, hidden);
    return pass.has_one_position ? edited : at_position(edited, pass.options.only_position);
}

/// An encoder-decoder announces both towers' ends: its decoder's are what forward() is about.
std::string Tower::end_prefix() const {
    return is_encoder() ? "encoder_" : "";
}

std::vector<WaitingTensors::Slot> Tower::run(const std::vector<Start>& starts, WaitingTensors& waiting) const {
    std::vector<std::unique_ptr<Pass>> passes;
    for (const Start& start : starts) {
        passes.push_back(std::make_unique<Pass>(start, waiting));
        begin(*passes.back(), *start.batch);
        passes.back()->wait();
    }
    const auto each = [&passes](const auto& step) {
        for (const auto& pass : passes) {
            pass->resume();
            step(*pass);
            pass->wait();
        }
    };
    const PassSize size = size_of(starts);
    for (std::size_t number = 0; number < order_.size(); ++number) {
        try {
            each([&](Pass& pass) {
                run_mixers(pass, number, size);
                if (!runs_in_steps()) run_feed_forward(pass, number);
            });
            if (runs_in_steps()) each([&](Pass& pass) { run_feed_forward(pass, number); });
        } catch (...) {
            throw current_error("layer " + std::to_string(place_.first_layer + static_cast<std::int64_t>(number)));
        }
    }
    each([&](Pass& pass) { pass.hidden = end(pass); });
    std::vector<WaitingTensors::Slot> hidden;
    for (const auto& pass : passes) hidden.push_back(std::move(pass->state));
    return hidden;
}

}  // namespace headscope::model

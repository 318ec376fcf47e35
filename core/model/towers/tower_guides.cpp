// SPDX-License-Identifier: GPL-3.0-or-later
// Guide streams (RndEmbQK and FixedSeqQK of Deconstructing Attention): sequences of their own that go through the stack
// beside the texts. They depend on no text, so they are run before it: in training once a step for the whole batch,
// recorded by autograd; otherwise once, and their queries and keys are kept for every text and token to come.
#include <algorithm>

#include <ATen/ops/embedding.h>

#include "core/base/error.h"
#include "core/model/load/tensor_plan.h"
#include "core/model/towers/tower.h"

namespace headscope::model {

using mixers::GuideMaps;
using mixers::QueryKeySource;

namespace {

constexpr QueryKeySource kGuides[] = {QueryKeySource::random_guide, QueryKeySource::fixed_guide};

}  // namespace

void Tower::declare_guides(TensorPlan& plan, const TensorNames& names) {
    const auto reads = [this](QueryKeySource guide) {
        return std::any_of(layers_.begin(), layers_.end(),
                           [guide](const Layer& layer) { return layer.source() == guide; });
    };
    const Dimension positions{config_->max_positions, names.keys.positions};
    if (reads(QueryKeySource::random_guide)) {
        plan.want(&guide_noise_, {names.prefix + names.guide},
                  {{1, "one sequence"}, positions, {config_->hidden, names.keys.hidden}}, Initial::guide);
    }
    if (reads(QueryKeySource::fixed_guide))
        plan.want(&guide_ids_, {names.prefix + names.guide_ids}, {positions}, Initial::ids);
    reads_guides_ = reads(QueryKeySource::random_guide) || reads(QueryKeySource::fixed_guide);
    if (reads_guides_ && rotary_ && rotary_->depends_on_length()) {
        throw Error(ErrorCode::unsupported, "config.json: rope_parameters",
                    "expected rotary positions whose angles do not depend on the text's length, for guide streams",
                    "found \"" + config_->rope.type + '"');
    }
}

/// Input of a guide's first layer, [1, length, d].
at::Tensor Tower::guide_input(QueryKeySource guide, std::int64_t length) const {
    if (guide == QueryKeySource::random_guide) return guide_noise_.narrow(1, 0, length);
    const at::Tensor ids = guide_ids_.narrow(0, 0, length);
    const std::int64_t vocabulary = embedding_.rows();
    if (ids.lt(0).logical_or(ids.ge(vocabulary)).any().item<bool>()) {
        throw Error(ErrorCode::limit, "model.guide_ids", "expected ids from 0 to " + std::to_string(vocabulary - 1),
                    "found others");
    }
    return embedding_({ids.unsqueeze(0), {}, {}}, 0);
}

std::vector<GuideMaps> Tower::run_guides(std::int64_t length, const ForwardOptions& options,
                                         mixers::StackContext context) const {
    std::vector<GuideMaps> maps(order_.size());
    context.first_position = 0;
    context.probe = nullptr;
    context.lengths = nullptr;
    context.editor = nullptr;
    context.training = nullptr;
    const auto source = [this](std::size_t number) { return layers_[order_[number]].source(); };
    const auto skipped = [&](std::size_t number) {
        return options.skip_layers.count(static_cast<int>(place_.first_layer) + static_cast<int>(number)) != 0;
    };
    struct Stream {
        QueryKeySource guide;
        at::Tensor input, hidden;
        Halfway half;
        std::int64_t last = -1;  ///< the last layer that reads it
    };
    std::vector<Stream> streams;
    for (const QueryKeySource guide : kGuides) {
        Stream stream{guide, {}, {}, {}};
        for (std::size_t number = 0; number < order_.size(); ++number) {
            if (!skipped(number) && source(number) == guide) stream.last = static_cast<std::int64_t>(number);
        }
        if (stream.last < 0) continue;
        stream.input = stream.hidden = guide_input(guide, length);
        streams.push_back(std::move(stream));
    }
    const Rotation turned = rotation(rotary_, 0, length, false);
    turned.enter(context);
    for (std::size_t number = 0; number < order_.size(); ++number) {
        if (context.cancellation) context.cancellation->check();
        if (skipped(number)) continue;
        enter(number, PassSize::some, context.cancellation);
        const Layer& layer = layers_[order_[number]];
        for (const Stream& stream : streams) {
            if (stream.guide == source(number))
                maps[number] = layer.mixer->guide_maps(
                    config_->pre_norm ? layer.input_norm(stream.hidden) : stream.hidden, context);
        }
        context.layer = LayerIndex(place_.first_layer + static_cast<std::int64_t>(number));
        context.guide = &maps[number];
        const auto goes_on = [number](const Stream& stream) { return static_cast<std::int64_t>(number) < stream.last; };
        for (Stream& stream : streams) {
            if (!goes_on(stream)) continue;
            context.input_embedding = embedding_for(layer, stream.input);
            stream.half = mix(layer, stream.hidden, context, {});
        }
        for (Stream& stream : streams) {
            if (!goes_on(stream)) continue;
            enter_feed_forward(context.cancellation);
            stream.hidden = feed_forward(layer, stream.half, context);
        }
    }
    return maps;
}

const std::vector<GuideMaps>& Tower::kept_guides(std::int64_t length, const ForwardOptions& options,
                                                 const mixers::StackContext& context) const {
    if (kept_.length < length || kept_.skipped != options.skip_layers) {
        // A text that grows token by token, to an unknown length, has its guide rerun only when it has doubled.
        const std::int64_t grown = kept_.skipped == options.skip_layers ? 2 * kept_.length : 0;
        const std::int64_t ahead = length <= expected_ ? expected_ : grown;
        const std::int64_t wanted = std::min(std::max(length, ahead), config_->max_positions);
        kept_.length = 0;
        kept_.maps = run_guides(wanted, options, context);
        kept_.skipped = options.skip_layers;
        kept_.length = wanted;
    }
    return kept_.maps;
}

}  // namespace headscope::model

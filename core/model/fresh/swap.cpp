// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/fresh/swap.h"

#include <algorithm>
#include <set>
#include <utility>

#include <ATen/ops/empty.h>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json/json.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/checkpoint/convert.h"
#include "core/checkpoint/torch_types.h"
#include "core/mixers/types/type.h"
#include "core/model/fresh/fresh_weights.h"
#include "core/model/load/native_config.h"
#include "core/model/towers/stack.h"

namespace headscope::model {
namespace {

/// The layers whose mixer is another one afterwards.
std::set<int> replace(std::vector<std::string>& mixers, const std::map<int, std::string>& swap,
                      const std::string& where) {
    std::set<int> changed;
    for (const auto& [layer, mixer] : swap) {
        if (layer < 0 || layer >= static_cast<int>(mixers.size())) {
            throw Error(ErrorCode::limit, where, "expected a layer from 0 to " + std::to_string(mixers.size() - 1),
                        "found " + std::to_string(layer));
        }
        std::string& own = mixers[static_cast<std::size_t>(layer)];
        if (own != mixer && mixers::find_type(mixer) == nullptr) {
            throw Error(ErrorCode::unsupported, "mixer", "expected one of " + list_text(mixers::known_names(), 40),
                        "found " + escaped(mixer));
        }
        if (own != mixer) changed.insert(layer);
        own = mixer;
    }
    return changed;
}

/// The mixers of all layers, an encoder's first.
std::vector<std::string> all_mixers(const ModelConfig& config) {
    std::vector<std::string> all = config.encoder ? config.encoder->mixers : std::vector<std::string>();
    all.insert(all.end(), config.mixers.begin(), config.mixers.end());
    return all;
}

/// Prefixes of a mixer's tensors in this layer, of the whole model.
std::vector<std::string> mixer_stems(const Blueprint& made, int layer) {
    const std::int64_t before = made.config.encoder ? made.config.encoder->layers : 0;
    const bool in_encoder = layer < before;
    const TensorNames& names = in_encoder ? *made.encoder_names : made.names;
    const std::string stem = names.prefix + numbered(names.layer, in_encoder ? layer : layer - before);
    return {stem + "self_attn.", stem + "cross_attn."};
}

/// Prefixes of any head's tensors.
const std::vector<std::string>& head_stems() {
    static const std::vector<std::string> stems{"head.", "classifier.", "lm_head.", "cls.", "bert.pooler.", "score."};
    return stems;
}

/// True if `config`, of a native stack, gets another head.
bool replace_head(nlohmann::json& config, const std::string& head) {
    if (head.empty()) return false;
    const nlohmann::json before = std::exchange(config["head"], parse_json(head, "head"));
    return config["head"] != before;
}

/// transformers' BERT or GPT-2 as the native stack that it is; its tensors keep their names (ModelConfig::layout).
ModelConfig native_stack(ModelConfig config) {
    config.family = kNativeFamily;
    config.original_json.clear();
    config.recurrent_norm_epsilon = config.norm_epsilon;  // of no layer that it has
    return config;
}

/// GPT-2 with the scores that a native stack has.
bool is_plain_gpt2(const ModelConfig& config) {
    return config.family == "gpt2" && config.causal && config.attention_scale == 0 && !config.scale_by_inverse_layer;
}

bool begins(const std::string& name, const std::vector<std::string>& stems) {
    for (const std::string& stem : stems)
        if (name.compare(0, stem.size(), stem) == 0) return true;
    return false;
}

struct Wants {
    ModelConfig config;
    std::vector<TensorPlan::Want> all;
};

/// Every tensor of the model, compared with the file.
Wants wants_of(const Swapped& swapped) {
    Wants wants;
    const Stack model(swapped.blueprint, swapped.plan, [&](const TensorPlan& plan) { wants.all = plan.wants(); });
    wants.config = model.config();
    return wants;
}

}  // namespace

Swapped swap_mixers(const checkpoint::Checkpoint& file, const MixerSwap& swap) {
    Blueprint own = make_blueprint(file);
    std::vector<std::string> mixers = all_mixers(own.config);
    const std::set<int> changed = replace(mixers, swap.layers, escaped(file.display_name()));
    const bool swaps = !changed.empty() || !swap.options.empty();
    if (!swaps && swap.head.empty()) return {std::move(own), TensorPlan(file)};
    if (swaps && !own.config.layout.empty()) {
        throw Error(ErrorCode::unsupported, escaped(file.display_name()),
                    "expected tensors under the native names, to swap mixers",
                    "found those that transformers has for " + own.config.layout);
    }
    const bool by_class = !swaps && (own.config.family == "bert" ? !own.config.causal : is_plain_gpt2(own.config));
    if (!swaps && !by_class && own.config.family != kNativeFamily && !own.config.causal) {
        throw Error(ErrorCode::unsupported, escaped(file.display_name()),
                    "expected a native model or a BERT, to replace its head", "found " + escaped(own.config.family));
    }
    nlohmann::json config = native_json(by_class ? native_stack(own.config) : own.config);
    config["layers"] = mixers;
    const bool other_head = replace_head(config, swap.head);
    if (!swaps && !other_head) return {std::move(own), TensorPlan(file)};
    if (!swap.options.empty()) config["mixers"] = parse_json(swap.options, "mixers");
    if (!own.config.layout.empty() || by_class) {
        nlohmann::json outside = file.config();
        outside[kNativeInside] = std::exchange(config, nlohmann::json());
        config = std::move(outside);
    }
    Swapped swapped{make_blueprint(config, &file), TensorPlan()};
    // A note that both have appears once.
    std::vector<std::string>& notes = swapped.blueprint.notes;
    for (const std::string& note : own.notes) notes.erase(std::remove(notes.begin(), notes.end(), note), notes.end());
    notes.insert(notes.begin(), own.notes.begin(), own.notes.end());
    const TensorNames& names = swapped.blueprint.names;
    std::vector<std::string> stems;
    if (!names.guide.empty()) stems.push_back(names.prefix + names.guide);
    for (const int layer : changed)
        for (std::string& stem : mixer_stems(swapped.blueprint, layer)) stems.push_back(std::move(stem));
    swapped.plan =
        TensorPlan(file, [stems = std::move(stems)](const std::string& tensor) { return begins(tensor, stems); });
    if (other_head) {
        swapped.plan.renew(head_stems());
        if (swapped.blueprint.config.tied_head) swapped.plan.share_tied_head();
    }
    return swapped;
}

std::vector<std::string> convert_swapped(const checkpoint::Checkpoint& file, const MixerSwap& swap, std::uint64_t seed,
                                         const std::filesystem::path& destination, checkpoint::LoadAs as,
                                         Progress& progress, const Cancellation& cancellation) {
    try {
        const Swapped swapped = swap_mixers(file, swap);
        const Wants wants = wants_of(swapped);
        const TensorNames& names = swapped.blueprint.names;
        const checkpoint::TensorInfo& table = file.tensor(
            names.lone_embedding.empty() ? names.prefix + names.token_embedding + ".weight" : names.lone_embedding);
        const at::ScalarType type = checkpoint::torch_type(checkpoint::loaded_type(table.type, as)).value();

        checkpoint::ConvertChanges changes;
        std::vector<std::string> made;
        std::set<std::string> needed;
        for (const TensorPlan::Want& want : wants.all) {
            needed.insert(want.tensor);
            if (!want.fresh) continue;
            made.push_back(want.tensor);
            const at::Tensor value = at::empty(want.sizes(), want.initial == Initial::ids ? at::kLong : type);
            fill_fresh(want, wants.config, seed, value);
            changes.added.push_back(checkpoint::output_tensor(want.tensor, value));
        }
        changes.left_out = {made.begin(), made.end()};
        std::set<std::string> stems;
        if (!names.guide.empty()) stems.insert(names.prefix + names.guide);  // which no layer may read any more
        for (const auto& [layer, mixer] : swap.layers)
            for (std::string& stem : mixer_stems(swapped.blueprint, layer)) stems.insert(std::move(stem));
        if (!swap.head.empty()) stems.insert(head_stems().begin(), head_stems().end());
        for (const std::string& stem : stems) {
            for (auto at = file.tensors().lower_bound(stem); at != file.tensors().end(); ++at) {
                if (at->first.compare(0, stem.size(), stem) != 0) break;
                if (needed.count(at->first) == 0) changes.left_out.insert(at->first);
            }
        }
        const nlohmann::json written = saved_json(wants.config, type);
        changes.config = &written;
        checkpoint::convert(file, destination, as, changes, progress, cancellation);
        return made;
    } catch (...) {
        throw current_error(escaped(destination.string()));
    }
}

}  // namespace headscope::model

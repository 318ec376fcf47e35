// SPDX-License-Identifier: GPL-3.0-or-later
// What Headscope trains: a pre-norm decoder in the manner of Qwen2 whose layers each name their mixer
// (docs/file-formats.md, "Native checkpoints"; Deconstructing Attention, arXiv 2510.11602).
#include <algorithm>
#include <cmath>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/checkpoint.h"
#include "core/mixers/types/sigmoid.h"
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

std::vector<std::string> read_layers(const ConfigReader& reader, std::int64_t layers) {
    if (!reader.has("layers")) return std::vector<std::string>(static_cast<std::size_t>(layers), "standard");
    std::vector<std::string> mixers = reader.texts("layers");
    if (static_cast<std::int64_t>(mixers.size()) != layers)
        reader.refuse("layers", "the mixers of " + std::to_string(layers) + " layers");
    for (const std::string& mixer : mixers) {
        if (mixers::find_type(mixer) != nullptr) continue;
        throw Error(ErrorCode::unsupported, reader.where("layers"),
                    "expected of each layer one of " + list_text(mixers::known_names(), 40), "found " + escaped(mixer));
    }
    return mixers;
}

tokenizer::HashSettings read_embedding(const ConfigReader& reader) {
    const auto embedding = reader.view("embedding");
    return embedding ? tokenizer::read_hash_settings(*embedding) : tokenizer::HashSettings();
}

/// What a hash embedding cannot be with.
void check_embedding(const ConfigReader& reader, const ModelConfig& config) {
    const tokenizer::HashSettings& hashed = config.hashed;
    if (hashed.is_table()) return;
    if (config.vocabulary != 0)
        reader.refuse("vocab_size", "0, or no such key, for a hash embedding has no vocabulary");
    if (config.tied_head) reader.refuse("tie_word_embeddings", "false, for a hash embedding has no vocabulary");
    if (hashed.functions > 0 && config.hidden % hashed.functions != 0) {
        reader.refuse("hidden_size",
                      "a multiple of embedding.hash_functions (" + std::to_string(hashed.functions) + ")");
    }
    for (const std::string& mixer : config.mixers) {
        if (mixers::find_type(mixer)->query_key_source == mixers::QueryKeySource::fixed_guide)
            reader.unsupported("layers", "no " + mixer + ", whose guide is of a vocabulary's tokens");
    }
}

ModelConfig read(const ConfigReader& reader) {
    constexpr std::int64_t positions = 2048;
    SizeDefaults sizes;
    const tokenizer::HashSettings hashed = read_embedding(reader);
    sizes.may_lack_vocabulary = !hashed.is_table();
    sizes.may_lack_feed_forward = true;
    ModelConfig config = reader.boolean("rotary", true) ? read_llama(reader, positions, sizes)
                                                        : read_llama_without_positions(reader, positions, sizes);
    config.query_key_value_bias = reader.boolean("attention_bias", false);
    config.output_bias = reader.boolean("output_bias", false);
    if (reader.boolean("qk_norm", false)) config.query_key_norm = QueryKeyNorm::each_head;
    config.mixers = read_layers(reader, config.layers);
    config.mixer_options = read_mixer_options(reader);
    const auto options = reader.object("mixers");
    const auto sigmoid = options ? options->object(mixers::kSigmoid.name) : std::nullopt;
    if (!sigmoid || !sigmoid->has("bias")) {
        const auto longest = static_cast<double>(std::max<std::int64_t>(config.max_positions, 1));
        config.mixer_options.set(mixers::kSigmoid, "bias", -std::log(longest));
    }
    // Guides are as long as the model's positions, and no longer.
    config.positions_are_a_table =
        std::any_of(config.mixers.begin(), config.mixers.end(),
                    [](const std::string& mixer) { return mixers::find_type(mixer)->reads_guide(); });
    config.hashed = hashed;
    check_embedding(reader, config);
    return config;
}

/// Whoever writes such a file by hand may leave keys out that its tensors answer.
void fill_in(nlohmann::json& config, const checkpoint::Checkpoint& file) {
    const auto has = [&file](std::string_view end) {
        return std::any_of(file.tensors().begin(), file.tensors().end(),
                           [end](const auto& tensor) { return std::string_view(tensor.first).ends_with(end); });
    };
    const auto decide = [&config](const char* key, bool value) {
        if (!config.contains(key) || config.at(key).is_null()) config[key] = value;
    };
    decide("attention_bias", has(".self_attn.q_proj.bias"));
    decide("qk_norm", has(".self_attn.q_norm.weight"));
    decide("tie_word_embeddings",
           !has("lm_head.weight") && read_embedding(ConfigReader(config, "config.json")).is_table());
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    names.in_layer.query_norm = "self_attn.q_norm";
    names.in_layer.key_norm = "self_attn.k_norm";
    names.in_layer.sinks = "self_attn.sinks";
    names.guide = "guide";
    names.guide_ids = "guide_ids";
    if (!config.hashed.is_table()) names.head.clear();  // no vocabulary to say anything of
    return names;
}

}  // namespace

const Family kHeadscope{"headscope", {"headscope"}, "Headscope's own: Qwen2's decoder with any mixer in each layer",
                        read,        names,         nullptr,
                        fill_in};

}  // namespace headscope::model

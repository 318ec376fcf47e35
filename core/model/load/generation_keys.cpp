// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/load/generation_keys.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace headscope::model {
namespace {

using enum KeyUse;

constexpr std::string_view kSampling = "--temperature decides: an answer is greedy without it";
constexpr std::string_view kDrafts = "drafts are checked by the model, so the answer is the model's own";
constexpr std::string_view kMemory = "changes speed and memory, not the answer";
constexpr std::string_view kReturned = "selects what a Python call returns";
constexpr std::string_view kRecord = "records where the file comes from";
constexpr std::string_view kUnbuilt = "none: this kind of search is not built";

constexpr GenerationKey kKeys[] = {
    // Length
    {"max_length", obeyed, "", ""},
    {"max_new_tokens", obeyed, "", ""},
    {"min_length", obeyed, "0", ""},
    {"min_new_tokens", obeyed, "0", ""},
    {"exponential_decay_length_penalty", obeyed, "", ""},
    {"max_time", refused, "", "none: a limit in seconds makes answers depend on the machine"},
    {"stop_strings", refused, "", "none: stop strings are not built"},
    // Special tokens
    {"bos_token_id", obeyed, "", ""},
    {"eos_token_id", obeyed, "", ""},
    {"decoder_start_token_id", obeyed, "", ""},
    {"forced_bos_token_id", obeyed, "", ""},
    {"forced_eos_token_id", obeyed, "", ""},
    {"pad_token_id", without_effect, "", "one text at a time has no padding"},
    // Scores of the vocabulary
    {"repetition_penalty", obeyed, "1", ""},
    {"encoder_repetition_penalty", obeyed, "1", ""},
    {"no_repeat_ngram_size", obeyed, "0", ""},
    {"encoder_no_repeat_ngram_size", obeyed, "0", ""},
    {"bad_words_ids", obeyed, "", ""},
    {"sequence_bias", obeyed, "", ""},
    {"suppress_tokens", obeyed, "", ""},
    {"begin_suppress_tokens", obeyed, "", ""},
    {"remove_invalid_values", obeyed, "false", ""},
    {"renormalize_logits", obeyed, "false", ""},
    {"guidance_scale", refused, "1", "1: guidance by a second prompt is not built"},
    {"watermarking_config", refused, "", "none: watermarks are not built"},
    {"token_healing", refused, "false", "false: rewriting the prompt's last token is not built"},
    // Beams
    {"num_beams", obeyed, "1", ""},
    {"length_penalty", obeyed, "1", ""},
    {"early_stopping", obeyed, "false", ""},
    {"num_beam_groups", refused, "1", "1: groups of beams are not built"},
    {"diversity_penalty", without_effect, "0", "applies to groups of beams alone"},
    {"constraints", refused, "", kUnbuilt},
    {"force_words_ids", refused, "", kUnbuilt},
    {"penalty_alpha", refused, "0", kUnbuilt},
    {"dola_layers", refused, "", kUnbuilt},
    // Sampling
    {"do_sample", without_effect, "false", kSampling},
    {"temperature", without_effect, "1", kSampling},
    {"top_k", obeyed, "0", ""},
    {"top_p", obeyed, "1", ""},
    {"min_p", obeyed, "", ""},
    {"top_h", refused_when_sampling, "", "none: this rule of sampling is not built"},
    {"typical_p", refused_when_sampling, "1", "1: this rule of sampling is not built"},
    {"epsilon_cutoff", refused_when_sampling, "0", "0: this rule of sampling is not built"},
    {"eta_cutoff", refused_when_sampling, "0", "0: this rule of sampling is not built"},
    // Drafts of another model, of a head or of the prompt
    {"use_mtp", without_effect, "false", kDrafts},
    {"prompt_lookup_num_tokens", without_effect, "", kDrafts},
    {"max_matching_ngram_size", without_effect, "", kDrafts},
    {"assistant_early_exit", without_effect, "", kDrafts},
    {"num_assistant_tokens", without_effect, "", kDrafts},
    {"num_assistant_tokens_schedule", without_effect, "", kDrafts},
    {"assistant_confidence_threshold", without_effect, "", kDrafts},
    {"assistant_lookbehind", without_effect, "", kDrafts},
    {"target_lookbehind", without_effect, "", kDrafts},
    {"assistant_ensemble_weight", without_effect, "", "applies to drafts of another model, of which there is none"},
    {"speculation_type", without_effect, "", kDrafts},
    {"is_assistant", refused, "false", "false: a model that writes drafts for another stops where it is unsure"},
    // Speed and memory
    {"use_cache", without_effect, "", kMemory},
    {"cache_implementation", refused, "", "a cache that keeps keys and values as they are"},
    {"cache_config", without_effect, "", kMemory},
    {"max_cache_len", without_effect, "", kMemory},
    {"low_memory", without_effect, "", kMemory},
    {"prefill_chunk_size", without_effect, "", kMemory},
    {"compile_config", without_effect, "", kMemory},
    {"disable_compile", without_effect, "", kMemory},
    {"continuous_batching_config", without_effect, "", kMemory},
    // Output
    {"num_return_sequences", without_effect, "1", "one answer is written, the best"},
    {"output_attentions", without_effect, "", kReturned},
    {"output_hidden_states", without_effect, "", kReturned},
    {"output_scores", without_effect, "", kReturned},
    {"output_logits", without_effect, "", kReturned},
    {"return_dict_in_generate", without_effect, "", kReturned},
    {"transformers_version", without_effect, "", kRecord},
    {"_from_model_config", without_effect, "", kRecord},
};

}  // namespace

std::span<const GenerationKey> generation_keys() {
    return kKeys;
}

const GenerationKey* find_generation_key(std::string_view name) {
    const auto found =
        std::find_if(std::begin(kKeys), std::end(kKeys), [&](const auto& key) { return key.name == name; });
    return found == std::end(kKeys) ? nullptr : found;
}

bool is_active(const GenerationKey& key, const nlohmann::json& value) {
    if (value.is_null()) return false;
    // The quantized cache is the only one that changes numbers.
    if (key.name == "cache_implementation") return value == "quantized";
    return key.neutral.empty() || value != nlohmann::json::parse(key.neutral);
}

}  // namespace headscope::model

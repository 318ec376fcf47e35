// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// How a checkpoint's files want text to be generated: generation_config.json, else the same keys of config.json, as
// transformers 5.23 reads them (GenerationConfig.from_pretrained, from_model_config). A present generation_config.json
// replaces config.json's keys altogether. keys.h lists every key. Errors: headscope::Error with file and key: mismatch
// for a value of a wrong kind, unsupported for a refused one. Threads: plain functions.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/model/load/generation_keys.h"

namespace headscope::checkpoint {
class Checkpoint;
}

namespace headscope::model {

/// When beam search stops, by transformers' names.
enum class EarlyStopping {
    heuristic,  ///< false: no beam, divided at its present length, beats the worst of `width` hypotheses
    full,       ///< true: there are `width` hypotheses
    never       ///< "never": no beam can beat the worst of `width` hypotheses
};

/// false, true or "never", as files have it.
nlohmann::json early_stopping_name(EarlyStopping stopping);

struct SequenceBias {
    std::vector<std::int64_t> tokens;
    double bias = 0;
    bool operator==(const SequenceBias&) const = default;
};

/// Values that the files do not hold have their neutral ones, or none.
struct GenerationSettings {
    std::string file;  ///< for messages: "generation_config.json" or "config.json"

    std::optional<std::int64_t> longest;       ///< max_length: with the prompt, or with the decoder's start token
    std::optional<std::int64_t> longest_new;   ///< max_new_tokens; wins
    std::int64_t shortest = 0;                 ///< min_length, counted as max_length
    std::optional<std::int64_t> shortest_new;  ///< min_new_tokens; wins
    std::optional<std::pair<std::int64_t, double>> length_decay;  ///< exponential_decay_length_penalty

    std::optional<std::int64_t> decoder_start;  ///< decoder_start_token_id, else bos_token_id
    std::optional<std::int64_t> forced_bos;
    std::vector<std::int64_t> ends;  ///< eos_token_id
    std::vector<std::int64_t> forced_ends;

    double repetition_penalty = 1, encoder_repetition_penalty = 1;
    std::int64_t no_repeat_ngram = 0, encoder_no_repeat_ngram = 0;
    std::vector<std::vector<std::int64_t>> bad_words;
    std::vector<SequenceBias> sequence_bias;
    std::vector<std::int64_t> suppressed, suppressed_first;
    bool remove_invalid = false, renormalize = false;

    std::optional<std::int64_t> beams;
    std::optional<double> length_penalty;
    std::optional<EarlyStopping> early_stopping;

    std::optional<std::int64_t> top_k;
    std::optional<double> top_p, min_p;

    /// True if the files set how beams are compared.
    bool describes_beams() const { return beams.value_or(1) > 1 || length_penalty || early_stopping; }
    /// The most new tokens behind `begun` tokens of the prompt or the decoder's start; none: not limited by the files.
    /// Throws where max_length leaves room for none.
    std::optional<std::int64_t> most_new(std::int64_t begun) const;

    bool operator==(const GenerationSettings&) const = default;
};

/// The keys that decide, as one object, and the file that they come from.
struct GenerationKeys {
    std::string file;
    nlohmann::json keys = nlohmann::json::object();
};
GenerationKeys generation_keys_of(const checkpoint::Checkpoint& checkpoint);
/// The generation settings that transformers takes from a config.json without a generation_config.json: known keys that
/// are not null; missing ones from `decoder`, `generator` or `text_config`, whichever exists first.
nlohmann::json generation_keys_of_config(const nlohmann::json& config);

/// `sampled`: also refuses rules of sampling that are not built.
GenerationSettings read_generation_settings(const GenerationKeys& keys, bool sampled = false);
GenerationSettings read_generation_settings(const checkpoint::Checkpoint& checkpoint, bool sampled = false);

/// A key of the files with an active value.
struct ActiveKey {
    const GenerationKey* key = nullptr;
    nlohmann::json value;
};
std::vector<ActiveKey> active_keys(const GenerationKeys& keys);

/// The tokens that end an answer: eos_token_id of the deciding file, else of config.json. None, one or several.
std::vector<std::int64_t> end_tokens(const checkpoint::Checkpoint& checkpoint);

/// The token that every text of an encoder-decoder's decoder begins with, as GenerationSettings::decoder_start. None
/// where transformers would refuse to generate: there config.json, or its class, decides.
std::optional<std::int64_t> decoder_start_token(const checkpoint::Checkpoint& checkpoint);

}  // namespace headscope::model

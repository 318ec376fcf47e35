// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/load/generation_settings.h"

#include "core/base/error.h"
#include "core/base/json/json.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/load/config_reader.h"

namespace headscope::model {
namespace {

using nlohmann::json;

constexpr std::uint64_t kLargestFile = std::uint64_t{1} << 20U;
constexpr const char* kOwnFile = "generation_config.json";
constexpr IntegerRange kTokens{0, (std::int64_t{1} << 31) - 1};

/// One id, or a list of them.
std::vector<std::int64_t> ids_of(const JsonView& value) {
    if (!value.is_array()) return {value.integer(kTokens)};
    return value.integers(kTokens);
}

std::vector<std::int64_t> ids_of(const ConfigReader& reader, const char* key) {
    const auto value = reader.view(key);
    return value ? ids_of(*value) : std::vector<std::int64_t>{};
}

std::optional<std::int64_t> count_of(const ConfigReader& reader, const char* key) {
    return reader.has(key) ? std::optional(reader.count(key, 0)) : std::nullopt;
}

/// eos_token_id as files have it: whole numbers, -1 among them, which no text holds.
std::vector<std::int64_t> ends_of(const json& keys) {
    std::vector<std::int64_t> tokens;
    const auto it = keys.find("eos_token_id");
    if (it == keys.end()) return tokens;
    for (const auto& item : it->is_array() ? *it : json::array({*it}))
        if (item.is_number_integer()) tokens.push_back(item.get<std::int64_t>());
    return tokens;
}

/// Not empty, each of at least one token.
std::vector<std::vector<std::int64_t>> words_of(const ConfigReader& reader, const char* key) {
    std::vector<std::vector<std::int64_t>> words;
    const auto list = reader.view(key);
    if (!list) return words;
    list->array();
    for (std::size_t i = 0; i < list->size(); ++i) {
        words.push_back(list->at(i).integers(kTokens));
        if (words.back().empty()) list->at(i).refuse(ErrorCode::mismatch, "expected at least one token");
    }
    return words;
}

/// [[[ids], bias], ...]: of equal ids the last bias counts.
std::vector<SequenceBias> biases_of(const ConfigReader& reader) {
    std::vector<SequenceBias> biases;
    const auto list = reader.view("sequence_bias");
    if (!list) return biases;
    list->array();
    for (std::size_t i = 0; i < list->size(); ++i) {
        const JsonView pair = list->at(i);
        if (!pair.is_array() || pair.size() != 2) pair.refuse(ErrorCode::mismatch, "expected [[token, ...], bias]");
        SequenceBias one{pair.at(std::size_t{0}).integers(kTokens), pair.at(1).number()};
        if (one.tokens.empty()) pair.refuse(ErrorCode::mismatch, "expected at least one token");
        std::erase_if(biases, [&](const SequenceBias& other) { return other.tokens == one.tokens; });
        biases.push_back(std::move(one));
    }
    return biases;
}

std::optional<EarlyStopping> early_stopping_of(const ConfigReader& reader) {
    constexpr const char* key = "early_stopping";
    if (!reader.has(key)) return std::nullopt;
    if (!reader.has_text(key)) return reader.boolean(key, false) ? EarlyStopping::full : EarlyStopping::heuristic;
    if (reader.text(key, "") != "never") reader.refuse(key, "true, false or \"never\"");
    return EarlyStopping::never;
}

std::optional<std::pair<std::int64_t, double>> length_decay_of(const ConfigReader& reader) {
    constexpr const char* key = "exponential_decay_length_penalty";
    const auto pair = reader.view(key);
    if (!pair) return std::nullopt;
    if (!pair->is_array() || pair->size() != 2) reader.refuse(key, "[first token, factor]");
    return std::pair{pair->at(std::size_t{0}).integer(kTokens), pair->at(1).number(0)};
}

void read_scores(const ConfigReader& reader, GenerationSettings& settings) {
    settings.repetition_penalty = reader.positive("repetition_penalty", 1);
    settings.encoder_repetition_penalty = reader.positive("encoder_repetition_penalty", 1);
    settings.no_repeat_ngram = reader.count("no_repeat_ngram_size", 0);
    settings.encoder_no_repeat_ngram = reader.count("encoder_no_repeat_ngram_size", 0);
    settings.bad_words = words_of(reader, "bad_words_ids");
    settings.sequence_bias = biases_of(reader);
    settings.suppressed = ids_of(reader, "suppress_tokens");
    settings.suppressed_first = ids_of(reader, "begin_suppress_tokens");
    settings.remove_invalid = reader.boolean("remove_invalid_values", false);
    settings.renormalize = reader.boolean("renormalize_logits", false);
}

/// bos_token_id counts where it is a token: decoders' files also have lists and -1 there, which start nothing.
std::optional<std::int64_t> start_of(const ConfigReader& reader) {
    if (reader.has("decoder_start_token_id")) return reader.count("decoder_start_token_id", 0);
    const auto bos = reader.view("bos_token_id");
    if (!bos || !bos->value().is_number_integer() || bos->value() < 0) return std::nullopt;
    return reader.count("bos_token_id", 0);
}

void refuse_unbuilt(const GenerationKeys& keys, bool sampled) {
    const ConfigReader reader(keys.keys, keys.file);
    for (const auto& [key, value] : active_keys(keys))
        if (key->use == KeyUse::refused || (sampled && key->use == KeyUse::refused_when_sampling))
            reader.unsupported(std::string(key->name), std::string(key->note));
}

}  // namespace

json early_stopping_name(EarlyStopping stopping) {
    if (stopping == EarlyStopping::never) return "never";
    return stopping == EarlyStopping::full;
}

std::optional<std::int64_t> GenerationSettings::most_new(std::int64_t begun) const {
    if (longest_new) return longest_new;
    if (!longest) return std::nullopt;
    if (*longest <= begun)
        throw Error(ErrorCode::usage, file + ": max_length",
                    "expected more than the " + std::to_string(begun) + " tokens that an answer begins with",
                    "found " + std::to_string(*longest) + " (--tokens takes its place)");
    return *longest - begun;
}

json generation_keys_of_config(const json& config) {
    json keys = json::object();
    const auto take = [&keys](const json& from) {
        for (const GenerationKey& key : generation_keys()) {
            const std::string name(key.name);
            const auto it = from.find(name);
            if (it != from.end() && !it->is_null() && !keys.contains(name)) keys[name] = *it;
        }
    };
    take(config);
    keys.erase("_from_model_config");
    const auto forced = config.find("force_bos_token_to_be_generated");
    if (forced != config.end() && *forced == true && keys.contains("bos_token_id"))
        keys["forced_bos_token_id"] = keys["bos_token_id"];
    for (const char* part : {"decoder", "generator", "text_config"}) {
        const auto it = config.find(part);
        if (it == config.end() || !it->is_object() || it->empty()) continue;
        take(*it);
        break;
    }
    return keys;
}

GenerationKeys generation_keys_of(const checkpoint::Checkpoint& checkpoint) {
    if (const auto path = checkpoint.side_file(kOwnFile)) {
        json keys = read_python_json_file(*path, kLargestFile, "generation configuration");
        if (!keys.is_object())
            throw Error(ErrorCode::format, kOwnFile, "expected a JSON object",
                        std::string("found ") + keys.type_name());
        // Files of before 4.26 that transformers itself made of a config.json.
        const auto is_true = [&](const char* key) { return keys.contains(key) && keys[key] == true; };
        if (is_true("_from_model_config") && is_true("force_bos_token_to_be_generated"))
            keys["forced_bos_token_id"] = keys.value("bos_token_id", json());
        return {kOwnFile, std::move(keys)};
    }
    if (!checkpoint.has_config()) return {"config.json", json::object()};
    return {"config.json", generation_keys_of_config(checkpoint.config())};
}

std::vector<ActiveKey> active_keys(const GenerationKeys& keys) {
    std::vector<ActiveKey> active;
    for (const GenerationKey& key : generation_keys()) {
        const auto it = keys.keys.find(std::string(key.name));
        if (it != keys.keys.end() && is_active(key, *it)) active.push_back({&key, *it});
    }
    return active;
}

GenerationSettings read_generation_settings(const GenerationKeys& keys, bool sampled) {
    const ConfigReader reader(keys.keys, keys.file);
    GenerationSettings settings;
    settings.file = keys.file;
    refuse_unbuilt(keys, sampled);

    settings.longest = count_of(reader, "max_length");
    if (reader.has("max_new_tokens")) settings.longest_new = reader.size("max_new_tokens");
    settings.shortest = reader.count("min_length", 0);
    settings.shortest_new = count_of(reader, "min_new_tokens");
    settings.length_decay = length_decay_of(reader);

    settings.decoder_start = start_of(reader);
    settings.forced_bos = count_of(reader, "forced_bos_token_id");
    settings.ends = ends_of(keys.keys);
    settings.forced_ends = ids_of(reader, "forced_eos_token_id");
    read_scores(reader, settings);

    if (reader.has("num_beams")) settings.beams = reader.size("num_beams");
    settings.length_penalty = reader.optional_number("length_penalty");
    settings.early_stopping = early_stopping_of(reader);

    settings.top_k = count_of(reader, "top_k");
    settings.top_p = reader.optional_number("top_p");
    settings.min_p = reader.optional_number("min_p");
    for (const char* key : {"top_p", "min_p"})
        if (const auto value = reader.optional_number(key); value && !(*value >= 0 && *value <= 1))
            reader.refuse(key, "a number from 0 to 1");
    return settings;
}

GenerationSettings read_generation_settings(const checkpoint::Checkpoint& checkpoint, bool sampled) {
    return read_generation_settings(generation_keys_of(checkpoint), sampled);
}

std::vector<std::int64_t> end_tokens(const checkpoint::Checkpoint& checkpoint) {
    std::vector<std::int64_t> tokens = ends_of(generation_keys_of(checkpoint).keys);
    if (tokens.empty() && checkpoint.has_config()) tokens = ends_of(generation_keys_of_config(checkpoint.config()));
    return tokens;
}

std::optional<std::int64_t> decoder_start_token(const checkpoint::Checkpoint& checkpoint) {
    const GenerationKeys keys = generation_keys_of(checkpoint);
    return start_of(ConfigReader(keys.keys, keys.file));
}

}  // namespace headscope::model

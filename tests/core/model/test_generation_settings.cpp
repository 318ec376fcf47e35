// SPDX-License-Identifier: GPL-3.0-or-later
// What generation_config.json, or config.json in its place, says about generation: every key of transformers'
// GenerationConfig, and answers of transformers (tests/oracle/generate/generation_settings.py).
#include "tests/catch_with_torch.h"

#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "core/model/generate/beam_search.h"
#include "core/model/generate/generate.h"
#include "core/model/generate/processors.h"
#include "core/model/generate/sampling.h"
#include "core/model/load/build.h"
#include "core/model/load/generation_keys.h"
#include "core/model/model.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using model::GenerationSettings;
using model::KeyUse;
using nlohmann::json;
using test::IsError;

namespace {

using Ids = std::vector<std::int64_t>;

const json& golden() {
    static const json data = [] {
        std::ifstream file(test::golden_file("generation_settings.json"));
        return json::parse(file);
    }();
    return data;
}

GenerationSettings read(const json& keys, bool sampled = false) {
    return model::read_generation_settings({"generation_config.json", keys}, sampled);
}

/// The golden model `name` with a case's files: of config.json some values, of which "absent" takes a key away.
void write_files(const std::string& name, const json& files, const std::filesystem::path& folder) {
    test::TinyCheckpoint tiny = test::golden_checkpoint(name);
    if (files.contains("config.json")) {
        tiny.config.update(files.at("config.json"));
        for (const auto& [key, value] : files.at("config.json").items())
            if (value == "absent") tiny.config.erase(key);
    }
    tiny.write(folder);
    if (files.contains("generation_config.json"))
        test::write_file(folder / "generation_config.json", files.at("generation_config.json").dump());
}

/// The answer as `headscope generate` makes it: greedy, or the best of the files' beams.
Ids answer(model::Model& model, const checkpoint::Checkpoint& checkpoint, const Ids& source, std::int64_t tokens) {
    const auto settings = model::read_generation_settings(checkpoint);
    if (tokens == 0) tokens = settings.most_new(model.config().encoder ? 1 : std::ssize(source)).value();
    if (settings.beams.value_or(1) > 1) {
        model::BeamOptions beams;
        beams.width = *settings.beams;
        beams.tokens = tokens;
        beams.end_tokens = model::end_tokens(checkpoint);
        beams.settings = settings;
        model::use_beams_of_files(settings, beams);
        return model::beam_search(model, source, beams).tokens;
    }
    model::GenerateOptions greedy;
    greedy.tokens = tokens;
    greedy.end_tokens = model::end_tokens(checkpoint);
    greedy.settings = settings;
    return model::generate(model, source, greedy);
}

/// A value that is not an absent key's, for each key that is read.
const std::map<std::string, json>& active_values() {
    static const std::map<std::string, json> values{{"max_length", 7},
                                                    {"max_new_tokens", 7},
                                                    {"min_length", 3},
                                                    {"min_new_tokens", 3},
                                                    {"exponential_decay_length_penalty", {5, 1.5}},
                                                    {"bos_token_id", 1},
                                                    {"eos_token_id", {2, 3}},
                                                    {"decoder_start_token_id", 4},
                                                    {"forced_bos_token_id", 5},
                                                    {"forced_eos_token_id", {2}},
                                                    {"repetition_penalty", 1.5},
                                                    {"encoder_repetition_penalty", 2},
                                                    {"no_repeat_ngram_size", 3},
                                                    {"encoder_no_repeat_ngram_size", 3},
                                                    {"bad_words_ids", {{1, 2}, {3}}},
                                                    {"sequence_bias", {{{1, 2}, 0.5}}},
                                                    {"suppress_tokens", {4, 5}},
                                                    {"begin_suppress_tokens", {4}},
                                                    {"remove_invalid_values", true},
                                                    {"renormalize_logits", true},
                                                    {"num_beams", 4},
                                                    {"length_penalty", 0.5},
                                                    {"early_stopping", true},
                                                    {"top_k", 20},
                                                    {"top_p", 0.5},
                                                    {"min_p", 0.1},
                                                    {"max_time", 3.5},
                                                    {"stop_strings", {"###"}},
                                                    {"guidance_scale", 1.5},
                                                    {"watermarking_config", {{"greenlist_ratio", 0.5}}},
                                                    {"token_healing", true},
                                                    {"num_beam_groups", 2},
                                                    {"constraints", {1}},
                                                    {"force_words_ids", {{1}}},
                                                    {"penalty_alpha", 0.6},
                                                    {"dola_layers", "high"},
                                                    {"is_assistant", true},
                                                    {"cache_implementation", "quantized"},
                                                    {"top_h", 0.5},
                                                    {"typical_p", 0.5},
                                                    {"epsilon_cutoff", 0.01},
                                                    {"eta_cutoff", 0.01}};
    return values;
}

}  // namespace

TEST_CASE("Every key of transformers' GenerationConfig is in the table, and none else", "[model][generation]") {
    std::set<std::string> theirs, ours;
    for (const auto& [name, value] : golden().at("keys").items()) theirs.insert(name);
    for (const auto& key : model::generation_keys()) CHECK(ours.insert(std::string(key.name)).second);
    CHECK(ours == theirs);
}

TEST_CASE("Each key of a generation file is read, refused, or without effect for a reason", "[model][generation]") {
    const GenerationSettings none = read(json::object());
    for (const auto& key : model::generation_keys()) {
        const std::string name(key.name);
        CAPTURE(name);
        CHECK(read({{name, nullptr}}, true) == none);
        if (key.use == KeyUse::without_effect) {
            CHECK(!key.note.empty());
            CHECK(read({{name, "anything"}}, true) == none);
            continue;
        }
        REQUIRE(active_values().contains(name));
        const json active = active_values().at(name);
        CHECK(model::is_active(key, active));
        if (!key.neutral.empty()) CHECK_FALSE(model::is_active(key, json::parse(key.neutral)));
        switch (key.use) {
            case KeyUse::obeyed:
                CHECK(read({{name, active}}) != none);
                break;
            case KeyUse::refused_when_sampling:
                CHECK(read({{name, active}}) == none);
                [[fallthrough]];
            default:
                CHECK_THROWS_MATCHES(read({{name, active}}, true), Error,
                                     IsError(ErrorCode::unsupported, "generation_config.json: " + name));
        }
    }
    // Those that any call of transformers sets are the ones that mean an absent key here.
    for (const auto& [name, value] : golden().at("keys").items()) {
        const auto* key = model::find_generation_key(name);
        if (!key || key->use == KeyUse::without_effect || name == "max_length" || name == "top_k") continue;
        CAPTURE(name);
        CHECK_FALSE(model::is_active(*key, value));
    }
    // A name that transformers does not have sets nothing there either.
    CHECK(read({{"a_word_of_somebody", 3}}) == none);
}

TEST_CASE("Answers obey the files' generation settings as transformers does", "[model][generation]") {
    std::map<std::string, std::shared_ptr<model::Model>> models;
    std::set<std::string> seen;
    REQUIRE(golden().at("answers").size() > 200);
    for (const json& one : golden().at("answers")) {
        const std::string name = one.at("model");
        INFO(one);
        const test::TemporaryFolder folder;
        write_files(name, one.at("files"), folder.path());
        const auto checkpoint = checkpoint::Checkpoint::open(folder.path());
        // The start token is a part of the model.
        const auto start = model::decoder_start_token(*checkpoint);
        auto& model = models[name + std::to_string(start.value_or(-1))];
        if (!model) model = model::Model::build(*checkpoint);
        CHECK(answer(*model, *checkpoint, one.at("source").get<Ids>(), one.at("tokens")) == one.at("said").get<Ids>());
        seen.insert(name);
    }
    CHECK(seen.size() == 7);
}

TEST_CASE("The decoder's first token is the one that transformers generates from", "[model][generation]") {
    for (const json& one : golden().at("starts")) {
        INFO(one);
        const test::TemporaryFolder folder;
        write_files("bart", one.at("files"), folder.path());
        const auto checkpoint = checkpoint::Checkpoint::open(folder.path());
        const std::int64_t start = model::inspect(*checkpoint).config.decoder_start;
        if (!one.at("start").is_null()) {
            CHECK(start == one.at("start"));
            continue;
        }
        // There transformers refuses to generate: config.json's token is taken, or its class's.
        const json& config = one.at("files").at("config.json");
        CHECK(start == (config.at("decoder_start_token_id") == "absent" ? json(2) : config["decoder_start_token_id"]));
    }
}

TEST_CASE("Sampling draws the tokens that transformers' rules leave", "[model][generation]") {
    model::Random random(3);
    for (const json& one : golden().at("sampling")) {
        INFO(one);
        const auto logits = one.at("logits").get<std::vector<float>>();
        std::set<std::int64_t> drawn;
        for (int i = 0; i < 4000; ++i)
            drawn.insert(model::choose_token(logits, one.at("temperature"), one.at("top_k"), one.at("top_p"), random,
                                             one.at("min_p")));
        const auto kept = one.at("kept").get<std::set<std::int64_t>>();
        CHECK(drawn == kept);
    }
}

TEST_CASE("Runs of tokens of the prompt are not continued as there", "[model][generation]") {
    const Ids source{3, 4, 5, 4, 6}, text{9, 4};
    const auto forbidden = [&](const json& keys) {
        const model::LogitsProcessors processors(read(keys), {source, {}, 1, 9, 10});
        std::vector<double> scores(10, 1.0);
        processors.apply(text, scores);
        Ids ids;
        for (std::size_t i = 0; i < scores.size(); ++i)
            if (std::isinf(scores[i])) ids.push_back(static_cast<std::int64_t>(i));
        return ids;
    };
    CHECK(forbidden({{"encoder_no_repeat_ngram_size", 1}}) == Ids{3, 4, 5, 6});
    CHECK(forbidden({{"encoder_no_repeat_ngram_size", 2}}) == Ids{5, 6});
    CHECK(forbidden({{"encoder_no_repeat_ngram_size", 3}}).empty());
}

TEST_CASE("Generation settings of a wrong kind are refused by file and key", "[model][generation]") {
    const std::vector<std::pair<json, std::string>> wrong{
        {{{"no_repeat_ngram_size", "two"}}, "no_repeat_ngram_size"},
        {{{"repetition_penalty", 0}}, "repetition_penalty"},
        {{{"bad_words_ids", {3}}}, "bad_words_ids[0]"},
        {json::parse(R"({"bad_words_ids": [[]]})"), "bad_words_ids[0]"},
        {{{"forced_bos_token_id", -1}}, "forced_bos_token_id"},
        {{{"sequence_bias", {{1, 2}}}}, "sequence_bias[0][0]"},
        {{{"early_stopping", "ever"}}, "early_stopping"},
        {{{"num_beams", 0}}, "num_beams"},
        {{{"max_new_tokens", 0}}, "max_new_tokens"},
        {{{"exponential_decay_length_penalty", {1}}}, "exponential_decay_length_penalty"},
        {{{"suppress_tokens", {"a"}}}, "suppress_tokens[0]"},
        {{{"min_p", 2}}, "min_p"}};
    for (const auto& [keys, place] : wrong) {
        INFO(keys);
        try {
            read(keys);
            FAIL("read");
        } catch (const Error& error) {
            CHECK(error.where() == "generation_config.json: " + place);
        }
    }
    const auto bart = test::golden_checkpoint("bart").build();
    const auto refuses = [&](const json& keys, const std::string& key) {
        model::GenerateOptions options;
        options.settings = read(keys);
        CHECK_THROWS_MATCHES(model::generate(*bart, Ids{5}, options), Error,
                             IsError(ErrorCode::mismatch, "generation_config.json: " + key));
        model::BeamOptions beams;
        beams.settings = read(keys);
        CHECK_THROWS_MATCHES(model::beam_search(*bart, Ids{5}, beams), Error,
                             IsError(ErrorCode::mismatch, "generation_config.json: " + key));
    };
    refuses({{"forced_bos_token_id", 43}}, "forced_bos_token_id");
    refuses({{"forced_eos_token_id", 43}}, "forced_eos_token_id");
    refuses({{"bad_words_ids", {{3, 43}}}}, "bad_words_ids");
    refuses({{"sequence_bias", {{{43}, 1.0}}}}, "sequence_bias");
    CHECK_THROWS_MATCHES(read({{"max_length", 5}}).most_new(5), Error,
                         IsError(ErrorCode::usage, "generation_config.json: max_length"));
    CHECK(read({{"max_length", 5}, {"max_new_tokens", 9}}).most_new(5) == 9);
}

TEST_CASE("Keys of a config.json are found as transformers finds them", "[model][generation]") {
    const auto keys = [](const json& config) { return model::generation_keys_of_config(config); };
    CHECK(keys({{"num_beams", 4}, {"hidden_size", 8}, {"eos_token_id", nullptr}}) == json{{"num_beams", 4}});
    // Keys that the top lacks come from one part.
    const json parts{{"eos_token_id", 3},
                     {"text_config", {{"eos_token_id", 5}, {"bos_token_id", 6}}},
                     {"generator", {{"top_k", 7}, {"hidden_size", 8}}}};
    CHECK(keys(parts) == json{{"eos_token_id", 3}, {"top_k", 7}});
    CHECK(keys({{"text_config", {{"eos_token_id", 5}}}}) == json{{"eos_token_id", 5}});
    CHECK(keys({{"force_bos_token_to_be_generated", true}, {"bos_token_id", 6}, {"_from_model_config", true}}) ==
          json{{"bos_token_id", 6}, {"forced_bos_token_id", 6}});
}

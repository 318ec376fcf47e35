// SPDX-License-Identifier: GPL-3.0-or-later
// Keys of tokenizer_config.json, against those that transformers reads
// (tests/oracle/generate/tokenizer_config_keys.py).
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/tokenizer/files/settings_keys.h"
#include "core/tokenizer/tokenizer.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using namespace headscope::tokenizer;
using nlohmann::json;
using test::IsError;

namespace {

json read(const std::string& name) {
    std::ifstream file(test::golden_file("tokenizer/" + name));
    return json::parse(file);
}

std::vector<std::int32_t> ids_of(const json& document, const json& tokenizer_config, const json& config,
                                 const std::string& text, bool framed = false) {
    const test::TemporaryFolder folder;
    test::write_file(folder / "tokenizer.json", document.dump());
    test::write_file(folder / "tokenizer_config.json", tokenizer_config.dump());
    test::write_file(folder / "config.json", config.dump());
    return Tokenizer::from_folder(folder.path())->encode(text, framed).ids;
}

}  // namespace

TEST_CASE("Every key that transformers' tokenizers read is obeyed, harmless or refused", "[tokenizer][settings]") {
    const auto keys = settings_keys();
    CHECK(std::is_sorted(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.name < b.name; }));
    const json known = read("config_keys.json");
    for (const auto& [key, classes] : known.items()) {
        INFO("read by " << classes.dump());
        CAPTURE(key);
        CHECK(std::any_of(keys.begin(), keys.end(), [&](const SettingsKey& one) { return one.name == key; }));
    }
    for (const SettingsKey& one : keys) {
        CAPTURE(one.name);
        CHECK(known.contains(std::string(one.name)));
        CHECK_FALSE(one.why.empty());
    }
}

TEST_CASE("Keys that a class builds its parts from go before tokenizer.json", "[tokenizer][settings]") {
    for (const json& one : read("settings.json")) {
        INFO(json({{"tokenizer_config", one.at("tokenizer_config")}, {"config", one.at("config")}}).dump());
        CHECK(ids_of(one.at("tokenizer"), one.at("tokenizer_config"), one.at("config"), one.at("text")) ==
              one.at("ids").get<std::vector<std::int32_t>>());
    }
}

TEST_CASE("LlamaTokenizer builds its pre-tokenizer of legacy and add_prefix_space", "[tokenizer][settings]") {
    const std::string space = "\u2581";
    const json prepend = {{"type", "Prepend"}, {"prepend", space}};
    const json replace = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", space}};
    json document = {
        {"version", "1.0"},
        {"added_tokens", json::array({{{"id", 1},
                                       {"content", "<s>"},
                                       {"single_word", false},
                                       {"lstrip", false},
                                       {"rstrip", false},
                                       {"normalized", false},
                                       {"special", true}}})},
        {"normalizer", {{"type", "Sequence"}, {"normalizers", json::array({prepend, replace})}}},
        {"pre_tokenizer", nullptr},
        {"post_processor", nullptr},
        {"decoder", nullptr},
        {"model",
         {{"type", "BPE"},
          {"unk_token", "<unk>"},
          {"fuse_unk", true},
          {"byte_fallback", true},
          {"vocab", {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}, {space, 3}, {"a", 4}, {space + "a", 5}}},
          {"merges", json::array({space + " a"})}}},
    };
    const auto ids = [&document](json settings, const char* name, const std::string& text) {
        settings["tokenizer_class"] = name;
        return ids_of(document, settings, {{"model_type", "llama"}}, text);
    };
    using Ids = std::vector<std::int32_t>;
    for (const char* name : {"LlamaTokenizer", "LlamaTokenizerFast"}) {
        // Without a key: a space before the first word alone.
        CHECK(ids(json::object(), name, "a") == Ids{5});
        CHECK(ids(json::object(), name, "<s>a") == Ids{1, 4});
        CHECK(ids(json::object(), name, " a") == Ids{5});
        CHECK(ids({{"add_prefix_space", nullptr}, {"legacy", false}}, name, "<s>a") == Ids{1, 4});
        CHECK(ids({{"legacy", true}}, name, "<s>a") == Ids{1, 5});
        CHECK(ids({{"add_prefix_space", false}}, name, "a") == Ids{4});
    }
    CHECK(ids({{"legacy", true}}, "CodeLlamaTokenizer", "<s>a") == Ids{1, 4});
    CHECK(ids({{"add_prefix_space", false}}, "CodeLlamaTokenizer", "a") == Ids{4});
    CHECK(ids({{"legacy", false}}, "PreTrainedTokenizerFast", "<s>a") == Ids{1, 5});
    CHECK(ids({{"legacy", false}}, "PreTrainedTokenizerFast", " a") == Ids{3, 5});
    document["decoder"] = {{"type", "Sequence"}, {"decoders", json::array({{{"type", "ByteLevel"}}})}};
    CHECK(ids({{"legacy", false}}, "LlamaTokenizer", "<s>a") == Ids{1, 5});
}

TEST_CASE("AlbertTokenizer's keys have to say what tokenizer.json's normalizer does", "[tokenizer][settings]") {
    json document = read("settings.json").at(0).at("tokenizer");
    document["normalizer"] = {{"type", "Sequence"},
                              {"normalizers", json::array({{{"type", "NFKD"}}, {{"type", "StripAccents"}}})}};
    const auto ids = [&document](json settings, const char* name) {
        settings["tokenizer_class"] = name;
        return ids_of(document, settings, json::object(), "a");
    };
    const json same = {{"keep_accents", false}, {"do_lower_case", false}};
    CHECK_NOTHROW(ids(same, "AlbertTokenizer"));
    CHECK_NOTHROW(ids(json::object(), "AlbertTokenizer"));
    for (const char* key : {"keep_accents", "do_lower_case"}) {
        json other = same;
        other[key] = true;
        CHECK_THROWS_MATCHES(ids(other, "AlbertTokenizerFast"), Error,
                             IsError(ErrorCode::unsupported, std::string(key) + "] expected false, as tokenizer.json"));
        CHECK_NOTHROW(ids(other, "PreTrainedTokenizerFast"));
    }
}

TEST_CASE("src_lang and legacy_behaviour frame the texts of translators", "[tokenizer][settings]") {
    json document = {{"version", "1.0"},
                     {"added_tokens", json::array()},
                     {"post_processor", nullptr},
                     {"model", {{"type", "BPE"}, {"vocab", {{"<unk>", 0}, {"a", 1}}}, {"merges", json::array()}}}};
    int id = 2;
    for (const char* token : {"</s>", "eng_Latn", "fra_Latn", "en_XX"})
        document["added_tokens"].push_back({{"id", id++},
                                            {"content", token},
                                            {"single_word", false},
                                            {"lstrip", false},
                                            {"rstrip", false},
                                            {"normalized", false},
                                            {"special", true}});
    const auto ids = [&document](json settings, const char* name) {
        settings["tokenizer_class"] = name;
        return ids_of(document, settings, {{"model_type", "m2m_100"}}, "a", true);
    };
    using Ids = std::vector<std::int32_t>;
    const json french = {{"src_lang", "fra_Latn"}};
    CHECK(ids(json::object(), "NllbTokenizer") == Ids{3, 1, 2});
    CHECK(ids(french, "NllbTokenizerFast") == Ids{4, 1, 2});
    CHECK(ids({{"src_lang", "fra_Latn"}, {"legacy_behaviour", true}}, "NllbTokenizer") == Ids{1, 2, 4});
    CHECK(ids({{"src_lang", nullptr}, {"eos_token", {{"content", "</s>"}}}}, "MBart50Tokenizer") == Ids{5, 1, 2});
    CHECK(ids(json::object(), "MBartTokenizer") == Ids{1, 2, 5});
    CHECK(ids(french, "PreTrainedTokenizerFast") == Ids{1});
    CHECK_THROWS_MATCHES(ids({{"src_lang", "deu_Latn"}}, "NllbTokenizer"), Error,
                         IsError(ErrorCode::mismatch, "src_lang] expected an added token"));
}

TEST_CASE("fix_mistral_regex repairs the first cut of large vocabularies of older files", "[tokenizer][settings]") {
    json vocabulary = {{"a", 0}, {"1", 1}, {"2", 2}, {"12", 3}};
    for (int id = 4; id <= 100'000; ++id) vocabulary["more" + std::to_string(id)] = id;
    const json bytes = {
        {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
    const json cut = {{"type", "Split"}, {"pattern", {{"Regex", "\\s+"}}}, {"behavior", "Isolated"}, {"invert", false}};
    json document = {{"version", "1.0"},
                     {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", json::array({cut, bytes})}}},
                     {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::array({"1 2"})}}}};
    const auto ids = [&document](bool repaired, const json& config) {
        return ids_of(document, {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"fix_mistral_regex", repaired}},
                      config, "a12");
    };
    using Ids = std::vector<std::int32_t>;
    const Ids as_written{0, 3}, by_digits{0, 1, 2};
    CHECK(ids(false, {{"model_type", "mistral"}}) == as_written);
    CHECK(ids(true, {{"model_type", "mistral"}}) == by_digits);
    CHECK(ids(true, {{"model_type", "mistral3"}, {"transformers_version", "4.57.3"}}) == by_digits);
    CHECK(ids(true, {{"model_type", "mistral"}, {"transformers_version", "5.0.0rc1"}}) == by_digits);
    CHECK(ids(true, {{"model_type", "mistral"}, {"transformers_version", "5.0.0"}}) == as_written);
    CHECK(ids(true, {{"model_type", "llama"}}) == as_written);
    document["pre_tokenizer"] = bytes;
    CHECK(ids(true, {{"model_type", "mistral"}}) == by_digits);
    document["model"]["vocab"].erase("more100000");
    CHECK(ids(true, {{"model_type", "mistral"}}) == as_written);
}

TEST_CASE("Answers are cleaned where the settings say so", "[tokenizer][settings]") {
    for (const json& one : read("answers.json")) {
        INFO(one.dump());
        const test::TemporaryFolder folder;
        test::write_file(folder / "tokenizer.json", one.at("tokenizer").dump());
        test::write_file(folder / "tokenizer_config.json", one.at("tokenizer_config").dump());
        const auto ids = one.at("ids").get<std::vector<std::int32_t>>();
        CHECK(Tokenizer::from_folder(folder.path())->answer(ids) == one.at("text").get<std::string>());
    }
}

TEST_CASE("A key that would change ids and is not built is refused by its name", "[tokenizer][settings]") {
    const json document = read("settings.json").at(0).at("tokenizer");
    CHECK_THROWS_MATCHES(ids_of(document, {{"split_special_tokens", true}}, json::object(), "a"), Error,
                         IsError(ErrorCode::unsupported, "split_special_tokens] expected false; found true"));
    CHECK_THROWS_MATCHES(
        ids_of(document, {{"tokenizer_class", "BertTokenizer"}, {"do_lower_case", "no"}}, json::object(), "a"), Error,
        IsError(ErrorCode::format, "do_lower_case]"));
    CHECK_NOTHROW(ids_of(document, {{"split_special_tokens", false}, {"own_key", 3}}, json::object(), "a"));
}

// SPDX-License-Identifier: GPL-3.0-or-later
// Requests as ids against what lm-eval reads and scores (tests/oracle/generate/harness_requests.py), and what a
// checkpoint says of prefix and length.
#include "tests/catch_with_torch.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/evaluation/harness/harness_requests.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using evaluation::HarnessRequest;
using evaluation::HarnessTokens;
using nlohmann::json;

namespace {

json read_golden(const std::string& name) {
    std::ifstream file(test::golden_file(name));
    return json::parse(file);
}

HarnessRequest request_of(const json& entry) {
    HarnessRequest request;
    request.ids = entry.at("ids").get<std::vector<std::int64_t>>();
    request.scored = entry.at("scored").get<std::int64_t>();
    if (entry.contains("source")) request.source = entry["source"].get<std::vector<std::int64_t>>();
    return request;
}

/// A checkpoint's folder with a tokenizer.
class Folder {
public:
    Folder(const test::TinyCheckpoint& checkpoint, const json& tokenizer, const json& tokenizer_config) {
        checkpoint.write(folder_.path());
        test::write_file(folder_ / "tokenizer.json", tokenizer.dump());
        test::write_file(folder_ / "tokenizer_config.json", tokenizer_config.dump());
    }
    HarnessTokens tokens(std::int64_t length = 0) const {
        return evaluation::harness_tokens(*checkpoint::Checkpoint::open(folder_.path()),
                                          tokenizer::Tokenizer::from_folder(folder_.path()), length);
    }

private:
    test::TemporaryFolder folder_;
};

/// A GPT-2 kind of tokenizer with an end of text, whose id is 421.
json with_end() {
    json document = read_golden("tokenizer/gpt2.json");
    document["added_tokens"].push_back({{"id", 421},
                                        {"content", "<|endoftext|>"},
                                        {"single_word", false},
                                        {"lstrip", false},
                                        {"rstrip", false},
                                        {"normalized", false},
                                        {"special", true}});
    return document;
}

}  // namespace

TEST_CASE("Requests and pages are read and scored as lm-eval does", "[evaluation]") {
    const json golden = read_golden("harness_requests.json");
    for (const auto& [name, kind] : golden.items()) {
        INFO(name);
        json document = read_golden("tokenizer/" + kind.at("file").get<std::string>() + ".json");
        document["added_tokens"] = kind.at("added_tokens");
        document.update(kind.at("changes"));
        const bool two_towers = kind.at("encoder_decoder").get<bool>();
        const Folder folder(test::golden_checkpoint(two_towers ? "t5" : "llama"), document, kind.at("names"));
        HarnessTokens tokens = folder.tokens();
        CHECK(tokens.prefix == kind.at("prefix").get<std::int32_t>());
        CHECK(tokens.prefix_text == kind.at("prefix_text").get<std::string>());
        CHECK(tokens.encoder_decoder == two_towers);
        int stopped = 0;
        for (const json& entry : kind.at("pairs")) {
            INFO(entry.dump());
            tokens.length = entry.at("length").get<std::int64_t>();
            const evaluation::TextPair texts{entry.at("context"), entry.at("continuation")};
            if (entry.contains("ids")) {
                CHECK((encode_request(tokens, texts, "here") == request_of(entry)));
            } else {
                ++stopped;
                CHECK_THROWS_AS(encode_request(tokens, texts, "here"), Error);
            }
        }
        CHECK(stopped > 0);
        for (const json& entry : kind.at("pages")) {
            INFO(entry.dump());
            tokens.length = entry.at("length").get<std::int64_t>();
            std::vector<HarnessRequest> wanted;
            for (const json& window : entry.at("windows")) wanted.push_back(request_of(window));
            CHECK((encode_page(tokens, entry.at("page"), "here") == wanted));
        }
    }
}

TEST_CASE("A request says whether its context was cut", "[evaluation]") {
    for (const char* model : {"llama", "t5"}) {
        const Folder folder(test::golden_checkpoint(model), with_end(), {{"eos_token", "<|endoftext|>"}});
        HarnessTokens tokens = folder.tokens(2);
        CHECK(encode_request(tokens, {"the answer of the question", "a"}, "here").cut);
        tokens.length = 64;
        CHECK_FALSE(encode_request(tokens, {"the answer of the question", "a"}, "here").cut);
    }
}

TEST_CASE("What cannot be asked is refused by its place", "[evaluation]") {
    const Folder folder(test::golden_checkpoint("llama"), with_end(), {{"eos_token", "<|endoftext|>"}});
    HarnessTokens tokens = folder.tokens(3);
    CHECK_THROWS_MATCHES(
        encode_request(tokens, {"the", " answer is"}, "items.jsonl:7"), Error,
        test::IsError(ErrorCode::limit, "[items.jsonl:7] expected a continuation of at most 3 tokens"));
    CHECK_THROWS_MATCHES(encode_request(tokens, {"the", ""}, "items.jsonl:7"), Error,
                         test::IsError(ErrorCode::usage, "expected a continuation of at least one token"));
    CHECK_THROWS_MATCHES(encode_request(tokens, {" \n", "a"}, "items.jsonl:7"), Error,
                         test::IsError(ErrorCode::usage, "expected a context of at least one token"));
    tokens.prefix.reset();
    CHECK_THROWS_MATCHES(encode_request(tokens, {"", "a"}, "items.jsonl:7"), Error,
                         test::IsError(ErrorCode::usage, "[items.jsonl:7] expected a context, for the tokenizer"));
}

TEST_CASE("The prefix is the tokenizer's beginning, else its end, whatever config.json says", "[evaluation]") {
    test::TinyCheckpoint llama = test::golden_checkpoint("llama");
    llama.config["bos_token_id"] = 3;
    const auto prefix = [&](const test::TinyCheckpoint& checkpoint, const json& config) {
        return Folder(checkpoint, with_end(), config).tokens().prefix;
    };
    CHECK(prefix(llama, {{"bos_token", "a"}, {"eos_token", "<|endoftext|>"}}) == 64);
    CHECK(prefix(llama, {{"bos_token", nullptr}, {"eos_token", {{"content", "<|endoftext|>"}}}}) == 421);
    CHECK(!prefix(llama, json::object()).has_value());
    // GPT-2's own folder says nothing: its class does.
    const test::TinyCheckpoint gpt2 = test::golden_checkpoint("gpt2");
    CHECK(prefix(gpt2, json::object()) == 421);
    CHECK(!prefix(gpt2, {{"tokenizer_class", "PreTrainedTokenizerFast"}}).has_value());
    CHECK_THROWS_MATCHES(
        [&] {
            const test::TemporaryFolder folder;
            gpt2.write(folder.path());
            evaluation::harness_tokens(*checkpoint::Checkpoint::open(folder.path()), nullptr, 0);
        }(),
        Error, test::IsError(ErrorCode::usage, "expected a tokenizer beside the model"));
}

TEST_CASE("A model reads at once what config.json, its family or its tokenizer says", "[evaluation]") {
    const auto length = [](const test::TinyCheckpoint& checkpoint, const json& config = json::object(),
                           std::int64_t asked = 0) {
        return Folder(checkpoint, with_end(), config).tokens(asked).length;
    };
    const json named = {{"model_max_length", 77}};
    test::TinyCheckpoint llama = test::golden_checkpoint("llama");
    CHECK(length(llama, named) == 64);
    CHECK(length(llama, named, 7) == 7);
    llama.config.erase("max_position_embeddings");
    CHECK(length(llama, named) == 2048);  // the family's
    CHECK(length(test::golden_checkpoint("gpt2"), named) == 32);
    const test::TinyCheckpoint endless = test::golden_checkpoint("hybrid-mamba2");
    CHECK(length(endless, named) == 77);
    CHECK(length(endless, {{"model_max_length", 1e30}}) == 2048);
    CHECK(length(endless, {{"model_max_length", nullptr}}) == 2048);
    CHECK(length(endless) == 2048);
}

// SPDX-License-Identifier: GPL-3.0-or-later
// Learned merges against those of the `tokenizers` library (tests/oracle/generate/bpe_trainer.py).
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/tokenizer/tokenizer.h"
#include "core/tokenizer/training/bpe_trainer.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using nlohmann::json;
using tokenizer::BpeSettings;
using tokenizer::BpeTrainer;

namespace {

tokenizer::TrainedBpe train(const BpeSettings& settings, const std::vector<std::string>& texts) {
    BpeTrainer trainer(settings);
    for (const std::string& text : texts) trainer.feed(text);
    NoProgress progress;
    return trainer.train(progress, Cancellation());
}

using Merges = std::vector<std::vector<std::string>>;

Merges merges_of(const tokenizer::TrainedBpe& model) {
    Merges merges;
    for (const auto& [left, right] : model.merges) {
        merges.push_back({model.pieces[static_cast<std::size_t>(left)], model.pieces[static_cast<std::size_t>(right)]});
    }
    return merges;
}

}  // namespace

TEST_CASE("a trained BPE has the vocabulary and the merges of the tokenizers library", "[tokenizer]") {
    std::ifstream file(test::golden_file("bpe_trainer.json"));
    const json cases = json::parse(file);
    REQUIRE(cases.size() >= 4);
    for (const json& golden : cases) {
        BpeSettings settings;
        settings.vocabulary = golden.at("vocab_size");
        settings.least_frequency = golden.at("min_frequency");
        settings.special_tokens = golden.at("special_tokens").get<std::vector<std::string>>();
        settings.all_bytes = golden.at("all_bytes");
        const auto texts = golden.at("texts").get<std::vector<std::string>>();
        INFO(texts[0].substr(0, 40));
        const auto model = train(settings, texts);
        CHECK(model.pieces == golden.at("pieces").get<std::vector<std::string>>());
        CHECK(merges_of(model) == golden.at("merges").get<Merges>());
    }
}

TEST_CASE("a trained BPE does not hang on the order of texts, and reads back what it writes", "[tokenizer]") {
    BpeSettings settings;
    settings.vocabulary = 300;
    settings.special_tokens = {"<|endoftext|>"};
    const std::vector<std::string> texts = {"the cat sat on the mat", " and the dog",
                                            "the\nlog \xC3\xA9t\xC3\xA9 \xC3\xA9t\xC3\xA9"};
    const auto model = train(settings, texts);
    const auto turned = train(settings, {texts[2], texts[0], texts[1]});
    CHECK(model.pieces == turned.pieces);
    CHECK(model.merges == turned.merges);
    const auto with = tokenizer::Tokenizer::from_json(tokenizer::byte_level_json(model, true), "trained");
    CHECK(with->vocabulary_size() == static_cast<std::int64_t>(model.pieces.size()));
    CHECK(with->id_of("<|endoftext|>") == 0);
    for (const std::string& text : texts) {
        const auto ids = with->encode(text).ids;
        CHECK(ids.size() < text.size());
        CHECK(with->decode(ids) == text);
    }
}

TEST_CASE("training stops at the size, at rare pairs, without text, and when asked", "[tokenizer]") {
    BpeSettings settings;
    settings.vocabulary = 258;
    CHECK(train(settings, {"aaaa bbbb"}).merges.size() == 2);
    settings.vocabulary = 1000;
    settings.least_frequency = 5;
    CHECK(train(settings, {"ab ab ab ab"}).merges.empty());
    CHECK(train(settings, {" ab ab ab ab ab"}).merges.size() == 2);
    CHECK(train(settings, {}).pieces.size() == 256);
    settings.all_bytes = false;
    CHECK(train(settings, {}).pieces.empty());
    CHECK(train(settings, {"a"}).pieces == std::vector<std::string>{"a"});

    BpeTrainer trainer(settings);
    settings.least_frequency = 0;
    trainer.feed("ab ab ab ab ab ab");
    Cancellation cancellation;
    cancellation.request();
    NoProgress progress;
    CHECK_THROWS_AS(trainer.train(progress, cancellation), Stopped);
}

// SPDX-License-Identifier: GPL-3.0-or-later
// Quoted words of options of `headscope ask`.
#include <catch2/catch.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/commands/ask/ask_input.h"
#include "core/tokenizer/pipeline.h"

using namespace headscope;

namespace {

/// The words' ids are their places in the list.
std::shared_ptr<const tokenizer::Tokenizer> of_words(const std::vector<std::string>& words,
                                                     std::shared_ptr<const tokenizer::Tokenizer> target = nullptr) {
    nlohmann::json document;
    document["model"] = {{"type", "WordLevel"}, {"unk_token", "?"}};
    for (std::size_t n = 0; n < words.size(); ++n) document["model"]["vocab"][words[n]] = n;
    return tokenizer::make_pipeline(document, "words", {}, std::move(target));
}

}  // namespace

TEST_CASE("Quoted answers are of the decoder's vocabulary where it has one of its own", "[ask][options]") {
    app::AskOptions options;
    options.metric = "logit";
    options.answer = "\"one\"";
    options.against = "\"two\",0";
    const auto source = of_words({"?", "one", "two"});
    const ask::Metric plain = app::metric_of(options, source.get());
    CHECK(plain.answer == std::vector<std::int64_t>{1});
    CHECK(plain.against == std::vector<std::int64_t>{2, 0});
    const auto both = of_words({"?", "one", "two"}, of_words({"?", "nil", "two", "one"}));
    const ask::Metric answered = app::metric_of(options, both.get());
    CHECK(answered.answer == std::vector<std::int64_t>{3});
    CHECK(answered.against == std::vector<std::int64_t>{2, 0});
}

// SPDX-License-Identifier: GPL-3.0-or-later
// Quoted words of options of `headscope ask`.
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "app/commands/ask/ask_input.h"
#include "tests/core/tokenizer/words.h"

using namespace headscope;
using test::tokenizer_of_words;

TEST_CASE("Quoted answers are of the decoder's vocabulary where it has one of its own", "[ask][options]") {
    app::AskOptions options;
    options.metric = "logit";
    options.answer = "\"one\"";
    options.against = "\"two\",0";
    const auto source = tokenizer_of_words({"?", "one", "two"});
    const ask::Metric plain = app::metric_of(options, source.get());
    CHECK(plain.answer == std::vector<std::int64_t>{1});
    CHECK(plain.against == std::vector<std::int64_t>{2, 0});
    const auto both = tokenizer_of_words({"?", "one", "two"}, tokenizer_of_words({"?", "nil", "two", "one"}));
    const ask::Metric answered = app::metric_of(options, both.get());
    CHECK(answered.answer == std::vector<std::int64_t>{3});
    CHECK(answered.against == std::vector<std::int64_t>{2, 0});
}

// SPDX-License-Identifier: GPL-3.0-or-later
// A session that goes forward and back ends where an uninterrupted run does, bit for bit.
#include <cstring>

#include "core/ask/generation.h"
#include "core/ask/generation_session.h"
#include "tests/catch_with_torch.h"
#include "tests/core/ask/asked_model.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;
using test::at_cell;
using test::near;

namespace {

constexpr std::int64_t kTokens = 5;
// gemma2 has windows, qwen3-next a state that cannot drop a token.
const std::vector<std::string> kModels{"llama", "gpt2", "gemma2", "hybrid-qwen3-next"};

test::AskedModel short_prompts(const std::string& name, std::size_t tokens = 6) {
    test::AskedModel asked(name);
    asked.texts.resize(1);
    asked.texts[0].resize(std::min(asked.texts[0].size(), tokens));
    return asked;
}

ask::GenerationOptions usual() {
    ask::GenerationOptions options;
    options.tokens = kTokens;
    options.top = 3;
    options.maps = true;
    return options;
}

store::AskRecord run_through(const test::AskedModel& asked, const ask::GenerationOptions& options) {
    store::AskRecord record = asked.record("generate");
    NoProgress progress;
    ask::run_generation(*asked.model, options, record, progress, Cancellation());
    return record;
}

store::AskRecord record_of(const test::AskedModel& asked, const ask::GenerationSession& session) {
    store::AskRecord record = asked.record("generate");
    ask::add_generation_tables(record, std::ssize(session.steps()), session.options().top, session.options().maps);
    ask::put_generation(record, 0, session.steps());
    return record;
}

/// Every table, NaN included.
bool same_bits(const store::AskRecord& a, const store::AskRecord& b) {
    if (a.tables.size() != b.tables.size()) return false;
    for (std::size_t i = 0; i < a.tables.size(); ++i) {
        const auto &x = a.tables[i].values, &y = b.tables[i].values;
        if (a.tables[i].path != b.tables[i].path || x.size() != y.size()) return false;
        if (std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) != 0) return false;
    }
    return true;
}

/// A token of the vocabulary other than the one of a step.
std::int64_t other_token(const store::AskRecord& record, std::int64_t step) {
    return at_cell(record, "/generate/token", {0, step}) == 7 ? 8 : 7;
}

}  // namespace

TEST_CASE("Stepping gives the numbers of an uninterrupted run", "[ask][generate]") {
    for (const std::string& name : kModels) {
        INFO(name);
        const test::AskedModel asked = short_prompts(name);
        const store::AskRecord whole = run_through(asked, usual());
        ask::GenerationSession session(*asked.model, usual(), asked.texts[0]);
        for (std::int64_t t = 0; t < kTokens; ++t) session.step(Cancellation());
        CHECK(same_bits(record_of(asked, session), whole));
    }
}

TEST_CASE("Going back and stepping again gives the same tokens and rows", "[ask][generate]") {
    for (const std::string& name : kModels) {
        INFO(name);
        const test::AskedModel asked = short_prompts(name);
        for (const double temperature : {0.0, 1.5}) {
            ask::GenerationOptions options = usual();
            options.temperature = temperature;
            options.seed = 11;
            const store::AskRecord whole = run_through(asked, options);
            ask::GenerationSession session(*asked.model, options, asked.texts[0]);
            for (std::int64_t t = 0; t < kTokens; ++t) session.step(Cancellation());
            for (const std::int64_t kept : {kTokens - 1, std::int64_t{2}, std::int64_t{0}}) {
                session.keep(kept);
                CHECK(std::ssize(session.steps()) == kept);
                while (std::ssize(session.steps()) < kTokens) session.step(Cancellation());
                CHECK(same_bits(record_of(asked, session), whole));
            }
        }
    }
}

TEST_CASE("A replaced token goes on as the command's, and as a prompt that holds it", "[ask][generate]") {
    for (const std::string& name : kModels) {
        INFO(name);
        const test::AskedModel asked = short_prompts(name);
        ask::GenerationOptions options = usual();
        const std::int64_t token = other_token(run_through(asked, options), 2);
        ask::GenerationSession session(*asked.model, options, asked.texts[0]);
        for (std::int64_t t = 0; t < kTokens; ++t) session.step(Cancellation());
        const ask::GeneratedStep& edited = session.replace(2, token, Cancellation());
        CHECK(edited.token == token);
        CHECK(edited.replaced);
        CHECK(std::ssize(session.steps()) == 3);
        while (std::ssize(session.steps()) < kTokens) session.step(Cancellation());
        options.replaced[2] = token;
        CHECK(same_bits(record_of(asked, session), run_through(asked, options)));

        std::vector<std::int64_t> prefix = asked.texts[0];
        for (std::int64_t t = 0; t < 3; ++t) prefix.push_back(session.steps()[static_cast<std::size_t>(t)].token);
        ask::GenerationSession fresh(*asked.model, usual(), prefix);
        for (std::size_t t = 3; t < static_cast<std::size_t>(kTokens); ++t) {
            const ask::GeneratedStep& one = fresh.step(Cancellation(), session.steps()[t].token);
            CHECK(near(one.log_probability, session.steps()[t].log_probability));
            CHECK(near(one.top_probability.front(), session.steps()[t].top_probability.front()));
            REQUIRE(one.rows.size() == session.steps()[t].rows.size());
            for (std::size_t r = 0; r < one.rows.size(); ++r)
                for (std::size_t h = 0; h < one.rows[r].entropy.size(); ++h)
                    CHECK(near(one.rows[r].entropy[h], session.steps()[t].rows[r].entropy[h]));
        }
    }
}

TEST_CASE("A long way back ends at the same tokens, also from a prompt of one token", "[ask][generate]") {
    constexpr std::int64_t kLong = 21;  // beyond the first kept state of a recurrent cache
    for (const std::string name : {"llama", "hybrid-qwen3-next"}) {
        INFO(name);
        const test::AskedModel asked = short_prompts(name, 1);
        ask::GenerationOptions options = usual();
        options.tokens = kLong;
        ask::GenerationSession session(*asked.model, options, asked.texts[0]);
        REQUIRE(session.room() >= kLong);
        const store::AskRecord whole = run_through(asked, options);
        for (std::int64_t t = 0; t < kLong; ++t) session.step(Cancellation());
        for (const std::int64_t kept : {kLong - 2, std::int64_t{17}, std::int64_t{3}}) {
            session.keep(kept);
            while (std::ssize(session.steps()) < kLong) session.step(Cancellation());
            CHECK(same_bits(record_of(asked, session), whole));
        }
    }
}

TEST_CASE("A stopped step leaves the session at the step before", "[ask][generate]") {
    const test::AskedModel asked = short_prompts("llama");
    const store::AskRecord whole = run_through(asked, usual());
    ask::GenerationSession session(*asked.model, usual(), asked.texts[0]);
    session.step(Cancellation());
    Cancellation stop;
    stop.request();
    CHECK_THROWS_AS(session.step(stop), Stopped);
    CHECK(std::ssize(session.steps()) == 1);
    session.rebind(*asked.model, nullptr);  // reads the prompt again
    while (std::ssize(session.steps()) < kTokens) session.step(Cancellation());
    CHECK(same_bits(record_of(asked, session), whole));
}

TEST_CASE("Interventions apply to every step of a session", "[ask][generate]") {
    const test::AskedModel asked = short_prompts("llama");
    model::Intervention silent;
    silent.layers = {0};
    silent.heads = {1};
    model::Interventions edits({silent}, asked.model->config(), asked.model->sites());
    ask::GenerationOptions options = usual();
    const store::AskRecord plain = run_through(asked, options);
    options.editor = &edits;
    ask::GenerationSession session(*asked.model, options, asked.texts[0]);
    for (std::int64_t t = 0; t < kTokens; ++t) session.step(Cancellation());
    session.keep(1);
    while (std::ssize(session.steps()) < kTokens) session.step(Cancellation());
    const store::AskRecord edited = record_of(asked, session);
    CHECK(same_bits(edited, run_through(asked, options)));
    CHECK_FALSE(same_bits(edited, plain));
}

TEST_CASE("A session refuses steps, tokens and models that it cannot have", "[ask][generate]") {
    const test::AskedModel asked = short_prompts("llama");
    const std::int64_t vocabulary = asked.model->config().vocabulary;
    ask::SessionOptions options;
    ask::GenerationSession session(*asked.model, options, asked.texts[0]);
    CHECK_THROWS_MATCHES(session.keep(1), Error, test::IsError(ErrorCode::usage, "ask generate"));
    CHECK_THROWS_MATCHES(session.replace(0, 1, Cancellation()), Error, test::IsError(ErrorCode::usage, "ask generate"));
    CHECK_THROWS_MATCHES(session.step(Cancellation(), vocabulary), Error,
                         test::IsError(ErrorCode::usage, "ask generate"));
    options.end_tokens = {session.step(Cancellation()).token};
    ask::GenerationSession ends(*asked.model, options, asked.texts[0]);
    ends.step(Cancellation());
    CHECK(ends.ended());
    CHECK_THROWS_MATCHES(ends.step(Cancellation()), Error, test::IsError(ErrorCode::usage, "ask generate"));
    const std::int64_t another = options.end_tokens.front() == 7 ? 8 : 7;
    ends.replace(0, another, Cancellation());
    CHECK_FALSE(ends.ended());
    const test::AskedModel bert("bert");
    CHECK_THROWS_MATCHES(ask::GenerationSession(*bert.model, {}, bert.texts[0]), Error,
                         test::IsError(ErrorCode::usage, "generate"));
}

// SPDX-License-Identifier: GPL-3.0-or-later
// What is read for requests, by numbers alone: everything asked is answered, nothing is read twice that need not be.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "core/evaluation/harness/harness_passes.h"

using namespace headscope;
using evaluation::HarnessRequest;
using evaluation::PassPlan;
using evaluation::PassRules;
using evaluation::Reading;
using Ids = std::vector<std::int64_t>;

namespace {

/// `count` ids that no other `kind` has.
Ids tokens(std::int64_t kind, std::int64_t count) {
    Ids ids(static_cast<std::size_t>(count));
    std::iota(ids.begin(), ids.end(), 1000 * kind);
    return ids;
}

HarnessRequest request(Ids before, const Ids& after) {
    before.insert(before.end(), after.begin(), after.end());
    return {std::move(before), {}, std::ssize(after)};
}

std::int64_t tokens_read(const PassPlan& plan) {
    std::int64_t sum = 0;
    for (const auto& batch : plan.batches) {
        for (const std::size_t one : batch.contexts) sum += plan.readings[one].source + batch.shared;
        for (const auto& pass : batch.passes)
            for (const std::size_t one : pass.readings) {
                const Reading& reading = plan.readings[one];
                sum += reading.length - batch.shared + (batch.shared == 0 ? reading.source : 0);
            }
    }
    return sum;
}

std::size_t groups(const PassPlan& plan) {
    std::size_t sum = 0;
    for (const auto& batch : plan.batches) sum += batch.contexts.size();
    return sum;
}

/// Invariants of any plan.
void check_plan(const std::vector<HarnessRequest>& requests, const PassRules& rules) {
    const PassPlan plan = plan_passes(requests, rules);
    std::vector<int> answered(requests.size()), read(plan.readings.size());
    std::int64_t longest = std::numeric_limits<std::int64_t>::max();
    for (const Reading& reading : plan.readings) {
        std::int64_t wanted = 0;
        for (const std::size_t one : reading.requests) {
            ++answered[one];
            const HarnessRequest &a = requests[one], &b = requests[reading.requests.front()];
            CHECK(a.source == b.source);
            CHECK(std::equal(a.ids.begin(), a.ids.end() - 1, b.ids.begin(), b.ids.end() - 1));
            CHECK(reading.source == std::ssize(a.source));
            CHECK(reading.length == std::ssize(a.ids) - (a.source.empty() ? 1 : 0));
            wanted = std::max(wanted, a.scored);
        }
        CHECK(reading.wanted == wanted);
    }
    for (const auto& batch : plan.batches) {
        CHECK((batch.shared > 0) == !batch.contexts.empty());
        for (const auto& pass : batch.passes) {
            std::int64_t length = 0, source = 0;
            for (std::size_t i = 0; i < pass.readings.size(); ++i) {
                const Reading& reading = plan.readings[pass.readings[i]];
                ++read[pass.readings[i]];
                length = std::max(length, reading.length);
                source = std::max(source, reading.source);
                const Reading& first = plan.readings[pass.readings.front()];
                if (rules.equal_lengths) CHECK((reading.length == first.length && reading.source == first.source));
                if (batch.shared == 0) continue;
                CHECK(reading.length > batch.shared);
                const HarnessRequest& own = requests[reading.requests.front()];
                const Reading& context = plan.readings[batch.contexts[pass.contexts[i]]];
                const HarnessRequest& theirs = requests[context.requests.front()];
                CHECK(own.source == theirs.source);
                const auto same = batch.shared - (own.source.empty() ? 0 : 1);
                CHECK(std::equal(own.ids.begin(), own.ids.begin() + same, theirs.ids.begin()));
            }
            const std::int64_t size = std::ssize(pass.readings);
            CHECK((size == 1 || size * (length + source) <= rules.batch_tokens));
        }
        const Reading& first = plan.readings[batch.passes.front().readings.front()];
        CHECK(first.length + first.source <= longest);
        longest = first.length + first.source;
    }
    CHECK(std::all_of(answered.begin(), answered.end(), [](int times) { return times == 1; }));
    CHECK(std::all_of(read.begin(), read.end(), [](int times) { return times == 1; }));
}

}  // namespace

TEST_CASE("Requests that differ in their last token are read once", "[evaluation]") {
    const std::vector<HarnessRequest> requests = {request(tokens(1, 50), {7}), request(tokens(1, 50), {8}),
                                                  request(tokens(1, 49), {1049, 8}), request(tokens(1, 50), {7})};
    const PassPlan plan = plan_passes(requests, {});
    REQUIRE(plan.readings.size() == 1);
    CHECK(plan.readings[0].wanted == 2);
    CHECK(tokens_read(plan) == 50);
    check_plan(requests, {});
}

TEST_CASE("Options behind a long context read it once", "[evaluation]") {
    std::vector<HarnessRequest> requests;
    for (std::int64_t item = 0; item < 3; ++item)
        for (std::int64_t option = 0; option < 4; ++option)
            requests.push_back(request(tokens(item, 64 + item), tokens(10 + 4 * item + option, 9)));
    const PassPlan plan = plan_passes(requests, {});
    // 64 of each context ahead, all three in one batch; what is left of it and eight tokens for each option.
    REQUIRE(plan.batches.size() == 1);
    CHECK(plan.batches[0].shared == 64);
    CHECK(plan.batches[0].contexts.size() == 3);
    CHECK(tokens_read(plan) == 3 * 64 + 4 * (8 + 9 + 10));
    check_plan(requests, {});
    PassRules rules;
    rules.reads_ahead = false;
    CHECK(tokens_read(plan_passes(requests, rules)) == 4 * (72 + 73 + 74));
    rules = {};
    rules.batch_tokens = 100;
    CHECK(groups(plan_passes(requests, rules)) == 3);
    check_plan(requests, rules);
}

TEST_CASE("A beginning that is short, or a small part of what is read, is read with the rest", "[evaluation]") {
    std::vector<HarnessRequest> requests = {request(tokens(1, 24), tokens(2, 3)), request(tokens(1, 24), tokens(3, 3))};
    CHECK(groups(plan_passes(requests, {})) == 0);
    requests = {request(tokens(1, 40), tokens(2, 90)), request(tokens(1, 40), tokens(3, 90))};
    CHECK(groups(plan_passes(requests, {})) == 0);
    requests = {request(tokens(1, 40), tokens(2, 9)), request(tokens(1, 40), tokens(3, 9))};
    CHECK(groups(plan_passes(requests, {})) == 1);
}

TEST_CASE("Of beginnings within beginnings those are read ahead that save most", "[evaluation]") {
    // One text of 40 tokens before all items; each has 80 of its own.
    std::vector<HarnessRequest> requests;
    const auto item = [&](std::int64_t number, std::int64_t own, std::int64_t options) {
        Ids context = tokens(1, 40);
        const Ids rest = tokens(2 + number, own);
        context.insert(context.end(), rest.begin(), rest.end());
        for (std::int64_t i = 0; i < options; ++i)
            requests.push_back(request(context, tokens(100 + 10 * number + i, 2)));
    };
    for (std::int64_t number = 0; number < 5; ++number) item(number, 80, 4);
    CHECK(groups(plan_passes(requests, {})) == 5);
    check_plan(requests, {});
    // Items of little beyond what all have: all are one group.
    requests.clear();
    for (std::int64_t number = 0; number < 5; ++number) item(number, 4, 2);
    CHECK(groups(plan_passes(requests, {})) == 1);
    // One alone beside them does not spoil the group of others.
    requests.clear();
    item(0, 80, 1);
    item(1, 80, 4);
    const PassPlan plan = plan_passes(requests, {});
    CHECK(groups(plan) == 1);
    CHECK(tokens_read(plan) == 121 + 120 + 4);
}

TEST_CASE("A text that goes on where another ends keeps a token of its own for each", "[evaluation]") {
    const std::vector<HarnessRequest> requests = {request(tokens(1, 64), {9}), request(tokens(1, 70), {9}),
                                                  request(tokens(1, 65), {9})};
    const PassPlan plan = plan_passes(requests, {});
    CHECK(groups(plan) == 1);
    CHECK(plan.batches[0].shared == 56);  // of 63, a multiple of 8
    check_plan(requests, {});
}

TEST_CASE("An encoder-decoder reads the source of several targets once", "[evaluation]") {
    std::vector<HarnessRequest> requests;
    for (std::int64_t source = 0; source < 2; ++source)
        for (std::int64_t option = 0; option < 3; ++option)
            requests.push_back({tokens(5 + option, 3 + option), tokens(source, 40), 3 + option});
    const PassPlan plan = plan_passes(requests, {});
    REQUIRE(plan.batches.size() == 1);
    CHECK(plan.batches[0].shared == 1);  // the start token
    CHECK(tokens_read(plan) == 2 * (40 + 1 + 2 + 3 + 4));
    check_plan(requests, {});
}

TEST_CASE("Plans hold for all kinds of requests", "[evaluation]") {
    std::mt19937 random(7);
    const auto below = [&](unsigned many) { return static_cast<std::int64_t>(random() % many); };
    for (int round = 0; round < 40; ++round) {
        const bool two_towers = round % 4 == 3;
        std::vector<HarnessRequest> requests;
        while (std::ssize(requests) < 30) {
            Ids context;
            if (!requests.empty() && below(3) > 0) {
                const HarnessRequest& other =
                    requests[static_cast<std::size_t>(below(static_cast<unsigned>(requests.size())))];
                context = two_towers ? other.source : other.ids;
                if (context.size() > 2 && below(2) > 0) context.resize(context.size() - 1);
            }
            for (std::int64_t left = below(60); left > 0; --left) context.push_back(below(3));
            context.push_back(below(3));
            for (std::int64_t option = below(5); option >= 0; --option) {
                Ids after(static_cast<std::size_t>(1 + below(4)));
                for (std::int64_t& id : after) id = below(3);
                if (two_towers)
                    requests.push_back({after, context, std::ssize(after)});
                else
                    requests.push_back(request(context, after));
            }
        }
        PassRules rules;
        rules.batch_tokens = round % 2 == 0 ? 1 + below(300) : 4096;
        rules.equal_lengths = round % 5 == 0;
        rules.reads_ahead = round % 7 != 0;
        check_plan(requests, rules);
    }
    CHECK(evaluation::plan_passes({}, {}).batches.empty());
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "core/data/catalog.h"
#include "core/data/data_set.h"
#include "core/tokenizer/tokenizer.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;
using namespace headscope::test;
using data::DataBatch;
using data::make_generator;
using data::no_target;
using data::Split;

namespace {

struct Sequence {
    std::vector<std::int64_t> ids, targets;
};

/// Sequences one by one.
std::vector<Sequence> sequences(const std::string& name, const std::map<std::string, double>& options,
                                std::int64_t length, std::int64_t count = 50, std::uint64_t seed = 1) {
    const auto generator = make_generator({name, options}, length);
    const DataBatch batch = generator.source(Split::training, seed)->read(0, count);
    std::vector<Sequence> all;
    for (std::int64_t s = 0; s < count; ++s) {
        const auto ids = batch.ids.begin() + s * length, targets = batch.targets.begin() + s * length;
        all.push_back({{ids, ids + length}, {targets, targets + length}});
        for (const std::int64_t id : all.back().ids) {
            REQUIRE(id >= 0);
            REQUIRE(id < static_cast<std::int64_t>(generator.pieces.size()));
        }
    }
    return all;
}

}  // namespace

TEST_CASE("every data set has a name, a description and options within their bounds", "[data]") {
    std::set<std::string> names;
    for (const data::Dataset& set : data::datasets()) {
        INFO(set.name);
        CHECK(names.insert(set.name).second);
        CHECK_FALSE(set.description.empty());
        CHECK(set.is_generator == set.package.empty());
        for (const auto& option : set.options) {
            CHECK(option.lowest <= number_of(option.standard));
            CHECK(number_of(option.standard) <= option.highest);
            CHECK_FALSE(option.help.empty());
        }
        if (!set.is_generator) continue;
        CHECK(set.sequence_length > 0);
        const auto generator = make_generator({set.name, {}}, set.sequence_length);
        const auto source = generator.source(Split::training, 3);
        CHECK(source->epoch() == 0);
        CHECK(source->vocabulary() == static_cast<std::int64_t>(generator.pieces.size()));
        CHECK(std::set<std::string>(generator.pieces.begin(), generator.pieces.end()).size() ==
              generator.pieces.size());
        const DataBatch batch = source->read(100, 4);
        CHECK(batch.counted > 0);
        CHECK(batch.ids == source->read(100, 4).ids);
        CHECK(batch.ids != source->read(101, 4).ids);
        CHECK(batch.ids != generator.source(Split::training, 4)->read(100, 4).ids);
        CHECK(batch.ids != generator.source(Split::validation, 3)->read(100, 4).ids);
    }
    CHECK(names.count("kjv") == 1);
}

TEST_CASE("copy says the same symbols once more behind the separator", "[data]") {
    for (const std::int64_t length : {2, 9, 10}) {
        const auto n = static_cast<std::size_t>(length / 2);
        for (const Sequence& s : sequences("copy", {{"symbols", 5}}, length)) {
            CHECK(s.ids[n] == 0);
            for (std::size_t i = 0; i < s.ids.size(); ++i) {
                CHECK(s.targets[i] == (i >= n && i < 2 * n ? s.ids[i - n] : no_target));
                if (i + 1 < s.ids.size() && s.targets[i] != no_target) CHECK(s.ids[i + 1] == s.targets[i]);
                if (i != n) CHECK(s.ids[i] >= 1);
            }
        }
    }
}

TEST_CASE("induction counts exactly the tokens that an earlier occurrence determines", "[data]") {
    std::set<std::size_t> periods;
    for (const Sequence& s : sequences("induction", {{"symbols", 20}, {"shortest", 3}}, 40)) {
        std::map<std::int64_t, std::int64_t> follows;
        std::size_t first = s.ids.size();
        for (std::size_t i = 0; i < s.ids.size(); ++i) {
            const bool seen = follows.count(s.ids[i]) > 0;
            CHECK((s.targets[i] != no_target) == seen);
            if (seen) CHECK(s.targets[i] == follows[s.ids[i]]);
            if (seen && first == s.ids.size()) first = i;
            if (i + 1 < s.ids.size()) follows[s.ids[i]] = s.ids[i + 1];
        }
        CHECK(first >= 3);
        CHECK(first <= 20);
        periods.insert(first);
    }
    CHECK(periods.size() > 5);
}

TEST_CASE("mqar is Zoology's: keys and values first, then each key once, its value the target", "[data]") {
    for (const std::int64_t passes : {1, 2}) {
        for (const bool fill : {false, true}) {
            const std::map<std::string, double> options = {
                {"vocabulary", 41}, {"pairs", 4}, {"passes", static_cast<double>(passes)}, {"fill", fill ? 1.0 : 0.0}};
            for (const Sequence& s : sequences("mqar", options, 34)) {
                std::map<std::int64_t, std::int64_t> values;
                const auto context = static_cast<std::size_t>(8 * passes);
                for (std::size_t i = 0; i < context; i += 2) {
                    CHECK(s.ids[i] >= 1);
                    CHECK(s.ids[i] < 20);
                    CHECK(s.ids[i + 1] >= 20);
                    if (i >= 8) CHECK(values.at(s.ids[i]) == s.ids[i + 1]);
                    values[s.ids[i]] = s.ids[i + 1];
                }
                CHECK(values.size() == 4);
                std::set<std::int64_t> asked;
                for (std::size_t i = 0; i < s.ids.size(); ++i) {
                    if (s.targets[i] == no_target) {
                        if (!fill && i >= context) CHECK(s.ids[i] == 0);
                        continue;
                    }
                    CHECK(i >= context);
                    CHECK((i - context) % 2 == 0);
                    CHECK(values.at(s.ids[i]) == s.targets[i]);
                    CHECK(asked.insert(s.ids[i]).second);
                }
                CHECK(asked.size() == 4);
            }
        }
    }
}

TEST_CASE("mqar's queries are as near as its power says", "[data]") {
    // One pair: place i has the weight (i + 1)^(power - 1).
    constexpr int count = 4000, space = 9;
    for (const double power : {0.01, 1.0}) {
        std::vector<double> hits(space), expected(space);
        double sum = 0;
        for (int i = 0; i < space; ++i) sum += expected[static_cast<std::size_t>(i)] = std::pow(i + 1, power - 1);
        for (const Sequence& s : sequences("mqar", {{"pairs", 1}, {"power", power}}, 20, count)) {
            for (std::size_t i = 2; i < s.ids.size(); ++i) hits[(i - 2) / 2] += s.targets[i] != no_target ? 1 : 0;
        }
        for (std::size_t i = 0; i < space; ++i) {
            const double p = expected[i] / sum;
            CHECK(std::abs(hits[i] - count * p) < 5 * std::sqrt(count * p * (1 - p)));
        }
    }
}

TEST_CASE("needle asks at the end for the value of a key that was hidden once", "[data]") {
    for (const Sequence& s : sequences("needle", {{"needles", 3}, {"keys", 5}, {"values", 4}, {"filler", 6}}, 30)) {
        std::map<std::int64_t, std::int64_t> values;
        for (std::size_t i = 0; i + 2 < s.ids.size(); ++i) {
            CHECK(s.targets[i] == no_target);
            if (s.ids[i] == 0) CHECK(values.emplace(s.ids[i + 1], s.ids[i + 2]).second);
        }
        CHECK(values.size() == 3);
        CHECK(s.ids[28] == 1);
        CHECK(s.targets[29] == values.at(s.ids[29]));
    }
    // The least length has no hay.
    CHECK(sequences("needle", {}, 5)[0].ids[0] == 0);
}

TEST_CASE("RULER's tasks are bytes whose answer counts, up to the end of the text", "[data]") {
    const std::vector<std::pair<std::string, std::map<std::string, double>>> kinds = {
        {"ruler-niah", {}},
        {"ruler-niah", {{"hay", 1}, {"keys", 3}, {"values", 2}, {"queries", 2}, {"digits", 3}}},
        {"ruler-vt", {{"variables", 3}, {"letters", 2}}},
        {"ruler-cwe", {}},
        {"ruler-fwe", {}}};
    for (const auto& [name, options] : kinds) {
        INFO(name);
        CHECK(make_generator({name, options}, 1200).bytes);
        for (const Sequence& s : sequences(name, options, 1200, 20)) {
            const auto end = std::find(s.ids.begin(), s.ids.end(), 256);
            CHECK(std::all_of(end, s.ids.end(), [](std::int64_t id) { return id == 256; }));
            const std::string text(s.ids.begin(), end);
            CHECK(text.size() > 1050);  // as full as whole lines and words allow
            std::string answer;
            std::int64_t ends = 0;
            for (std::size_t i = 0; i < s.ids.size(); ++i) {
                if (s.targets[i] == no_target) continue;
                if (s.targets[i] == 256)
                    ++ends;
                else
                    answer += static_cast<char>(s.targets[i]);
                if (i + 1 < s.ids.size()) CHECK(s.ids[i + 1] == s.targets[i]);
            }
            CHECK(ends == 1);
            REQUIRE(answer.size() > 2);
            CHECK(answer[0] == ' ');
            CHECK(text.ends_with(answer));
            // Every answer was shown before.
            std::istringstream words(answer);
            for (std::string word; words >> word;) {
                if (word.ends_with(',')) word.pop_back();
                CHECK(text.find(word) < text.size() - answer.size());
            }
        }
    }
}

TEST_CASE("RULER's tasks to train on are text for the tokenizer of bytes", "[data]") {
    data::DataSettings settings;
    settings.generator = data::GeneratorSettings{"ruler-niah", {}};
    settings.sequence_length = 512;
    NoProgress progress;
    const auto set = data::DataSet::prepare(settings, {}, progress, Cancellation());
    CHECK(set->vocabulary() == 257);
    CHECK(set->separator() == 256);
    const DataBatch batch = set->source(Split::training, 1)->read(0, 1);
    const std::vector<std::int32_t> some(batch.ids.begin(), batch.ids.begin() + 23);
    CHECK(set->tokenizer().decode(some) == "A special magic number ");
}

TEST_CASE("options of generators that cannot be are refused by name and bound", "[data]") {
    const auto refuses = [](const std::string& name, const std::map<std::string, double>& options, std::int64_t length,
                            const std::string& what) {
        CHECK_THROWS_MATCHES(make_generator({name, options}, length), Error, IsError(ErrorCode::usage, what));
    };
    refuses("inductoin", {}, 64, "(induction?)");
    refuses("kjv", {}, 64, "which is for data.corpus");
    refuses("copy", {{"symbol", 4}}, 64, "(symbols?)");
    refuses("copy", {{"symbols", 1}}, 64, "expected a whole number from 2 to 65535; found 1");
    refuses("copy", {{"symbols", 2.5}}, 64, "expected a whole number");
    refuses("copy", {{"symbols", std::nan("")}}, 64, "expected a whole number");
    refuses("copy", {}, 1, "expected a sequence_length of at least 2");
    refuses("copy", {}, 0, "data.sequence_length");
    refuses("induction", {{"symbols", 4}}, 64, "expected at least as many symbols as the shortest period");
    refuses("mqar", {}, 31, "expected a sequence_length of at least 32; found 31");
    refuses("mqar", {{"vocabulary", 16}}, 64, "expected at least 18 ids for 8 pairs");
    refuses("needle", {{"needles", 20}}, 640, "expected at least as many keys as needles");
    refuses("needle", {}, 4, "expected a sequence_length of at least 5");
    refuses("markov", {{"symbols", 4096}, {"order", 3}}, 64, "expected symbols^(order + 1) of at most 4194304");
    refuses("ruler-niah", {}, 300, "expected a sequence_length of at least 3");
    refuses("ruler-niah", {{"queries", 2}}, 512, "expected at least as many keys as queries");
    refuses("ruler-niah", {{"digits", 1}, {"values", 10}}, 4096, "at most 9 values");
    refuses("ruler-cwe", {{"other_repeats", 6}}, 4096, "expected common words more often than others");
    refuses("markov", {{"order", 17}}, 64, "from 0 to 16");
}

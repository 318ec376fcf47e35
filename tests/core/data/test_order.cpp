// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <set>
#include <thread>

#include "core/data/catalog.h"
#include "core/data/permutation.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/data/corpus.h"

using namespace headscope;
using namespace headscope::test;
using data::permuted;

TEST_CASE("a keyed permutation hits every item once, another key orders them otherwise", "[data]") {
    for (const std::int64_t count : {1, 2, 3, 5, 16, 17, 1000, 4097}) {
        std::vector<bool> seen(static_cast<std::size_t>(count));
        std::int64_t other = 0;
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t item = permuted(i, count, 7);
            REQUIRE(item >= 0);
            REQUIRE(item < count);
            REQUIRE_FALSE(seen[static_cast<std::size_t>(item)]);
            seen[static_cast<std::size_t>(item)] = true;
            other += permuted(i, count, 8) != item ? 1 : 0;
        }
        if (count >= 16) CHECK(other > count / 2);
    }
    const std::int64_t huge = std::int64_t{1} << 40;
    CHECK(permuted(huge - 1, huge, 1) != permuted(huge - 2, huge, 1));
}

TEST_CASE("a permutation mixes: neighbours are far apart, places and items do not correlate", "[data]") {
    constexpr std::int64_t count = 10007;
    double sum = 0, near = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const auto item = static_cast<double>(permuted(i, count, 3));
        sum += (static_cast<double>(i) - (count - 1) / 2.0) * (item - (count - 1) / 2.0);
        near += std::abs(item - static_cast<double>(permuted((i + 1) % count, count, 3))) < count / 100.0 ? 1 : 0;
    }
    const double variance = (static_cast<double>(count) * count - 1) / 12;
    // Five standard deviations of independent draws.
    CHECK(std::abs(sum / variance / count) < 5 / std::sqrt(static_cast<double>(count)));
    CHECK(near / count < 0.02 + 5 * std::sqrt(0.02 / count));
}

TEST_CASE("random numbers are those of SplitMix64 and the same for ever", "[data]") {
    // By hand from the published algorithm: seed 0 gives E220A8397B1DCDAF first.
    CHECK(data::splitmix64(0x9E3779B97F4A7C15U) == 0xE220A8397B1DCDAFU);
    data::Random one(1, 2), same(1, 2), other(1, 3);
    const std::uint64_t first = one.next();
    CHECK(first == same.next());
    CHECK(first != other.next());
    std::vector<int> hits(7);
    for (int i = 0; i < 7000; ++i) ++hits[static_cast<std::size_t>(one.below(std::int64_t{7}))];
    for (const int count : hits) CHECK(std::abs(count - 1000) < 5 * std::sqrt(1000));
}

TEST_CASE("an epoch reads every window once, in another order each epoch and seed", "[data]") {
    Corpus corpus;
    std::string text;
    for (int i = 0; i < 1000; ++i) text += static_cast<char>('a' + i % 26);
    corpus.write("a.txt", text);
    data::DataSettings settings;
    settings.text = {"a.txt"};
    settings.sequence_length = 7;
    settings.validation = 0;
    const auto set = corpus.prepare(settings);
    const auto source = set->source(data::Split::training, 5);
    // 1000 bytes and an end of text: 142 windows need 142 * 7 + 1 = 995 tokens.
    REQUIRE(source->epoch() == 142);
    std::vector<std::vector<std::int64_t>> orders;
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
        const data::DataBatch batch = source->read(epoch * 142, 142);
        CHECK(batch.counted == 142 * 7);
        std::multiset<std::int64_t> begins;
        std::vector<std::int64_t> order;
        for (std::int64_t s = 0; s < 142; ++s) {
            const auto at = static_cast<std::size_t>(s * 7);
            // Which window it is follows from two of its letters only for short texts: look it up.
            std::string letters;
            for (std::size_t i = 0; i < 7; ++i) {
                letters += static_cast<char>(batch.ids[at + i]);
                if (i < 6) CHECK(batch.targets[at + i] == batch.ids[at + i + 1]);
            }
            order.push_back(batch.ids[at]);
            begins.insert(batch.ids[at]);
            CHECK(text.find(letters) != std::string::npos);
        }
        std::multiset<std::int64_t> expected;
        for (std::size_t w = 0; w < 142; ++w) expected.insert(text[w * 7]);
        CHECK(begins == expected);
        orders.push_back(order);
    }
    CHECK(orders[0] != orders[1]);
    CHECK(orders[1] != orders[2]);
    CHECK(set->source(data::Split::training, 6)->read(0, 142).ids != source->read(0, 142).ids);
    // A batch is the same whatever is read before and around it.
    const auto all = source->read(0, 20), part = source->read(13, 3);
    CHECK(std::equal(part.ids.begin(), part.ids.end(), all.ids.begin() + 13 * 7));
    CHECK(std::equal(part.targets.begin(), part.targets.end(), all.targets.begin() + 13 * 7));
}

TEST_CASE("any number of data workers gives the same batches in order", "[data]") {
    const auto generator = data::make_generator({"mqar-small", {}}, 32);
    const auto source = generator.source(data::Split::training, 9);
    const data::ReadPlan plan{5, 3, 8};
    for (const int workers : {1, 2, 5}) {
        data::Prefetcher reader(*source, plan, workers, 3);
        for (std::int64_t b = 0; b < 40; ++b) {
            const data::DataBatch batch = reader.next();
            const data::DataBatch expected = source->read(5 + 8 * b, 3);
            REQUIRE(batch.ids == expected.ids);
            REQUIRE(batch.targets == expected.targets);
        }
    }
}

TEST_CASE("a reader hands on what its source throws, and stops when asked", "[data]") {
    class Broken final : public data::BatchSource {
    public:
        Broken() : BatchSource(4, 2) {}
        std::int64_t epoch() const override { return 0; }

    private:
        void write(std::int64_t index, std::int64_t* ids, std::int64_t*) const override {
            if (index == 3) throw Error(ErrorCode::format, "here", "expected a", "found b");
            std::fill(ids, ids + 4, index % 2);
        }
    };
    const Broken source;
    data::Prefetcher reader(source, {0, 1, 1}, 2, 2);
    for (int i = 0; i < 3; ++i) CHECK(reader.next().counted == 0);
    CHECK_THROWS_MATCHES(reader.next(), Error, IsError(ErrorCode::format));
    CHECK_THROWS_MATCHES(reader.next(), Error, IsError(ErrorCode::format));
    CHECK_THROWS_AS(source.read(-1, 1), Error);

    class Slow final : public data::BatchSource {
    public:
        Slow() : BatchSource(1, 2) {}
        std::int64_t epoch() const override { return 0; }

    private:
        void write(std::int64_t, std::int64_t*, std::int64_t*) const override {
            std::this_thread::sleep_for(std::chrono::milliseconds(400));
        }
    };
    const Slow slow;
    Cancellation cancellation;
    cancellation.request();
    data::Prefetcher waiting(slow, {}, 1, 1);
    CHECK_THROWS_AS(waiting.next(&cancellation), Stopped);
}

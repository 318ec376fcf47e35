// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <atomic>
#include <cmath>

#include "core/base/error.h"
#include "core/maps/map_reader.h"
#include "core/maps/word_map.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_recurrent.h"

using namespace headscope;

TEST_CASE("Tiles of an implicit matrix: means with later keys as 0, and the coefficient of greatest magnitude",
          "[maps][implicit]") {
    constexpr std::int64_t length = 131, head = 2;
    tests::RecurrentSample sample;
    sample.lengths = {length};
    const test::TemporaryFolder folder;
    tests::write_recurrent_analysis(folder / "a.headscope.h5", sample);
    const auto file = store::AnalysisFile::open(folder / "a.headscope.h5");
    const auto all = tests::synthetic_implicit(4, length, 1 + 2);
    const auto at = [&](std::int64_t i, std::int64_t j) {
        return all[static_cast<std::size_t>((head * length + i) * length + j)];
    };
    // Held whole, and read from the file tile by tile.
    for (const std::int64_t most_bytes : {maps::kMostImplicitBytes, std::int64_t{0}}) {
        const auto map = maps::read_implicit_map(*file, 0, tests::kRecurrentSite, head, most_bytes);
        REQUIRE(map);
        CHECK(map->queries() == length);
        CHECK((map->bytes() > 0) == (most_bytes > 0));
        float most = 0;
        for (std::int64_t i = 0; i < length; ++i)
            for (std::int64_t j = 0; j < length; ++j) most = std::max(most, std::abs(at(i, j)));
        CHECK(map->most() == most);
        const auto values = map->values({120, 131, 100, 131});
        for (std::int64_t i = 120; i < 131; ++i) {
            for (std::int64_t j = 100; j < 131; ++j) {
                const float value = values[static_cast<std::size_t>((i - 120) * 31 + j - 100)];
                if (j > i)
                    CHECK(std::isnan(value));
                else
                    CHECK(value == at(i, j));
            }
        }
        CHECK(map->allowed(5) == std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 6}});
        CHECK(std::isnan(map->read({3, 4, 1, 2})[0].logit));
        CHECK(map->read({3, 4, 1, 2})[0].weight == at(3, 1));

        constexpr int level = 3;
        constexpr std::int64_t side = 17;  // ceil(131 / 8)
        std::vector<float> mean(side * side), extreme(side * side);
        const std::atomic<bool> go_on{false};
        map->pool({0, length, 0, length}, level, side, mean.data(), extreme.data(), go_on);
        for (const std::int64_t r : {0, 7, 16}) {
            for (const std::int64_t c : {0, 5, 7, 16}) {
                double sum = 0, pairs = 0;
                float farthest = 0;
                for (std::int64_t i = 8 * r; i < std::min<std::int64_t>(8 * r + 8, length); ++i) {
                    for (std::int64_t j = 8 * c; j < std::min<std::int64_t>(8 * c + 8, length); ++j) {
                        ++pairs;
                        sum += static_cast<double>(at(i, j));
                        if (std::abs(at(i, j)) > std::abs(farthest)) farthest = at(i, j);
                    }
                }
                const auto cell = static_cast<std::size_t>(r * side + c);
                if (c > r) {
                    CHECK(std::isnan(mean[cell]));
                    CHECK(std::isnan(extreme[cell]));
                } else {
                    CHECK(static_cast<double>(mean[cell]) == Approx(sum / pairs).margin(1e-7));
                    CHECK(extreme[cell] == farthest);
                }
            }
        }
    }
    CHECK_FALSE(maps::read_implicit_map(*file, 0, tests::kSoftmaxSite, 0));
    CHECK_THROWS_AS(maps::read_rollout(*file, 0, tests::kSoftmaxSite), Error);  // through recurrent layers
}

TEST_CASE("Implicit matrices have a mean over sequences, and words whose coefficients are summed", "[maps][implicit]") {
    constexpr std::int64_t head = 1;
    const tests::RecurrentSample sample;  // 24 and 19 tokens
    const test::TemporaryFolder folder;
    tests::write_recurrent_analysis(folder / "a.headscope.h5", sample);
    const auto file = store::AnalysisFile::open(folder / "a.headscope.h5");
    const auto first = tests::synthetic_implicit(4, 24, 1 + 2), second = tests::synthetic_implicit(4, 19, 1 + 17 + 2);
    const auto at = [&](std::int64_t s, std::int64_t i, std::int64_t j) {
        const std::int64_t length = s == 0 ? 24 : 19;
        return static_cast<double>(
            (s == 0 ? first : second)[static_cast<std::size_t>((head * length + i) * length + j)]);
    };
    const auto mean = maps::read_mean_map(*file, tests::kRecurrentSite, head);
    REQUIRE(mean);
    CHECK(mean->queries() == 24);
    CHECK(mean->sequences() == 2);
    const auto pairs = mean->read({0, 24, 0, 24});
    double most = 0;
    for (std::int64_t i = 0; i < 24; ++i) {
        for (std::int64_t j = 0; j < 24; ++j) {
            const auto& pair = pairs[static_cast<std::size_t>(i * 24 + j)];
            REQUIRE(pair.sequences == (j > i ? 0 : i < 19 ? 2 : 1));
            if (j > i) continue;
            const double wanted = i < 19 ? (at(0, i, j) + at(1, i, j)) / 2 : at(0, i, j);
            REQUIRE(static_cast<double>(pair.weight) == Approx(wanted).margin(1e-7));
            CHECK(std::isnan(pair.logit));
            most = std::max({most, std::abs(at(0, i, j)), i < 19 ? std::abs(at(1, i, j)) : 0.0});
        }
    }
    CHECK(static_cast<double>(mean->most()) == most);
    CHECK(std::isnan(maps::read_mean_map(*file, tests::kSoftmaxSite, head)->most()));

    const std::vector<std::int64_t> begins{0, 1, 4, 9, 10, 24};
    const maps::WordMap words(maps::read_implicit_map(*file, 0, tests::kRecurrentSite, head), begins, begins);
    const auto values = words.values({0, 5, 0, 5});
    double greatest = 0;
    for (std::size_t q = 0; q < 5; ++q) {
        for (std::size_t k = 0; k < 5; ++k) {
            double sum = 0;
            for (std::int64_t i = begins[q]; i < begins[q + 1]; ++i)
                for (std::int64_t j = begins[k]; j < std::min(begins[k + 1], i + 1); ++j) sum += at(0, i, j);
            sum /= static_cast<double>(begins[q + 1] - begins[q]);
            if (k > q)
                CHECK(std::isnan(values[q * 5 + k]));
            else
                CHECK(static_cast<double>(values[q * 5 + k]) == Approx(sum).margin(1e-6));
            greatest = std::max(greatest, std::abs(sum));
        }
    }
    CHECK(static_cast<double>(words.most()) == Approx(greatest));
}

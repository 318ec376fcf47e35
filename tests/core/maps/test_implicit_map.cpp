// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <atomic>
#include <cmath>

#include "core/base/error.h"
#include "core/maps/map_reader.h"
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

// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "core/data/catalog.h"
#include "core/data/generators/markov_chain.h"

using namespace headscope;
using data::MarkovChain;

namespace {

/// H(last | the `known` before it) by counting all strings of order + 1 symbols, weighted, by the definition.
double entropy_by_definition(const MarkovChain& chain, std::int64_t known) {
    std::map<std::int64_t, double> longer, shorter;
    const std::int64_t v = chain.symbols();
    std::int64_t keep = 1;
    for (std::int64_t i = 0; i < known; ++i) keep *= v;
    for (std::size_t s = 0; s < chain.stationary().size(); ++s) {
        for (std::int64_t next = 0; next < v; ++next) {
            const double p = chain.stationary()[s] *
                             chain.probabilities()[s * static_cast<std::size_t>(v) + static_cast<std::size_t>(next)];
            const std::int64_t context = static_cast<std::int64_t>(s) % keep;
            longer[context * v + next] += p;
            shorter[context] += p;
        }
    }
    double entropy = 0;
    for (const auto& [text, p] : longer) entropy -= p * std::log(p / shorter.at(text / v));
    return entropy;
}

}  // namespace

TEST_CASE("a Markov chain's entropies are those of its distribution, falling with what is known", "[data]") {
    for (const std::int64_t order : {0, 1, 2, 3}) {
        const MarkovChain chain(8, order, 1.5, 11);
        REQUIRE(chain.entropies().size() == static_cast<std::size_t>(order) + 1);
        for (std::int64_t known = 0; known <= order; ++known) {
            const double entropy = chain.entropies()[static_cast<std::size_t>(known)];
            CHECK(entropy == Approx(entropy_by_definition(chain, known)).epsilon(1e-12));
            if (known > 0) CHECK(entropy < chain.entropies()[static_cast<std::size_t>(known) - 1] - 0.05);
        }
        CHECK(chain.entropies()[0] < std::log(8.0) + 1e-12);
    }
    const MarkovChain even(7, 2, 0.0, 1);
    for (const double entropy : even.entropies()) CHECK(entropy == Approx(std::log(7.0)).epsilon(1e-12));
}

TEST_CASE("the stationary distribution stays as it is", "[data]") {
    const MarkovChain chain(6, 2, 2.0, 3);
    std::vector<double> next(chain.stationary().size());
    for (std::size_t s = 0; s < next.size(); ++s) {
        for (std::size_t v = 0; v < 6; ++v)
            next[(s * 6 + v) % next.size()] += chain.stationary()[s] * chain.probabilities()[s * 6 + v];
    }
    double sum = 0;
    for (std::size_t s = 0; s < next.size(); ++s) {
        CHECK(next[s] == Approx(chain.stationary()[s]).margin(1e-14));
        sum += next[s];
    }
    CHECK(sum == Approx(1.0).epsilon(1e-13));
}

TEST_CASE("Markov text has the reported entropies at every place", "[data]") {
    const auto generator = data::make_generator({"markov", {{"symbols", 4}, {"order", 2}, {"table", 5}}}, 20);
    CHECK(generator.pieces == std::vector<std::string>{"a", "b", "c", "d"});
    const MarkovChain chain(4, 2, 1.5, 5);
    CHECK(generator.entropies == chain.entropies());
    constexpr std::int64_t count = 20000;
    const auto batch = generator.source(data::Split::training, 2)->read(0, count);
    CHECK(batch.counted == count * 20);
    // Mean and variance of -log p of what was drawn: for all places that see two symbols, and at the first place alone.
    for (const bool first : {false, true}) {
        double sum = 0, squares = 0, n = 0;
        for (std::int64_t s = 0; s < count; ++s) {
            const auto* ids = batch.ids.data() + s * 20;
            for (std::int64_t i = 1; i < (first ? 2 : 20); ++i) {
                const auto state = static_cast<std::size_t>(ids[i - 1] * 4 + ids[i]);
                const double loss = -std::log(
                    chain.probabilities()[state * 4 + static_cast<std::size_t>(
                                                          batch.targets[static_cast<std::size_t>(s * 20 + i)])]);
                sum += loss;
                squares += loss * loss;
                n += 1;
            }
        }
        const double mean = sum / n;
        const double error = std::sqrt((squares / n - mean * mean) / n);
        CHECK(std::abs(mean - chain.entropies()[2]) < 5 * error);
    }
    // Pairs of the first two symbols are drawn from the stationary distribution.
    std::vector<double> pairs(16);
    for (std::int64_t s = 0; s < count; ++s) {
        const auto* ids = batch.ids.data() + s * 20;
        pairs[static_cast<std::size_t>(ids[0] * 4 + ids[1])] += 1;
    }
    for (std::size_t state = 0; state < 16; ++state) {
        const double p = chain.stationary()[state];
        CHECK(std::abs(pairs[state] - count * p) < 5 * std::sqrt(count * p));
    }
}

TEST_CASE("a Markov text's sequences may be shorter than its order", "[data]") {
    const auto generator = data::make_generator({"markov", {{"symbols", 2}, {"order", 6}}}, 1);
    const auto batch = generator.source(data::Split::training, 2)->read(0, 100);
    CHECK(batch.counted == 100);
}

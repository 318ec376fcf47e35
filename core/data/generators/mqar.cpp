// SPDX-License-Identifier: GPL-3.0-or-later
// Multi-query associative recall as Zoology defines it (Arora, Eyuboglu et al. 2023, arXiv 2312.04927): first n keys,
// each with its value behind it, all different, perhaps shown several times; then each key once more, at an even
// distance from there, drawn without replacement by the weights i^(power - 1). Where a key is asked for, its value is
// the target and counts; the value itself is not shown. Everywhere else is token 0, or any random token.
#include <algorithm>
#include <cmath>

#include "core/data/generators/generators.h"

namespace headscope::data {
namespace {

struct MqarOptions {
    std::int64_t vocabulary, pairs, passes;
    bool fill;
    std::vector<double> weights;  ///< of the places of queries
};

class MqarSource final : public GeneratedSource {
public:
    MqarSource(std::int64_t length, MqarOptions options, Split split, std::uint64_t seed)
        : GeneratedSource(length, options.vocabulary, split, seed), options_(std::move(options)) {}

private:
    void fill(Random& random, std::int64_t* ids, std::int64_t* targets) const override {
        const std::int64_t n = options_.pairs;
        const std::int64_t middle = options_.vocabulary / 2;
        const auto keys = draw_different(random, middle - 1, n);  // 0 is no key
        const auto values = draw_different(random, options_.vocabulary - middle, n);
        const auto gaps = draw_weighted(random);
        const std::int64_t context = 2 * n * options_.passes;
        for (std::int64_t i = 0; i < length(); ++i) ids[i] = options_.fill ? random.below(options_.vocabulary) : 0;
        for (std::int64_t i = 0; i < context / 2; ++i) {
            const auto pair = static_cast<std::size_t>(i % n);
            ids[2 * i] = 1 + keys[pair];
            ids[2 * i + 1] = middle + values[pair];
        }
        for (std::size_t pair = 0; pair < keys.size(); ++pair) {
            const std::int64_t place = context + 2 * gaps[pair];
            ids[place] = 1 + keys[pair];
            targets[place] = middle + values[pair];
        }
    }

    /// As many places as there are pairs, one after the other by their weights (Efraimidis and Spirakis 2006).
    std::vector<std::int64_t> draw_weighted(Random& random) const {
        std::vector<std::pair<double, std::int64_t>> keyed;
        for (std::size_t i = 0; i < options_.weights.size(); ++i) {
            keyed.emplace_back(std::log1p(-random.uniform()) / options_.weights[i], static_cast<std::int64_t>(i));
        }
        const auto count = static_cast<std::ptrdiff_t>(options_.pairs);
        std::partial_sort(keyed.begin(), keyed.begin() + count, keyed.end(), std::greater<>());
        std::vector<std::int64_t> places;
        for (std::ptrdiff_t i = 0; i < count; ++i) places.push_back(keyed[static_cast<std::size_t>(i)].second);
        return places;
    }

    MqarOptions options_;
};

}  // namespace

Generator make_mqar(const GeneratorOptions& options, std::int64_t length) {
    MqarOptions read{
        options.whole("vocabulary"), options.whole("pairs"), options.whole("passes"), options.whole("fill") != 0, {}};
    if (read.pairs > read.vocabulary / 2 - 1) {
        options.refuse("expected at least " + std::to_string(2 * read.pairs + 2) + " ids for " +
                           std::to_string(read.pairs) + " pairs",
                       "found a vocabulary of " + std::to_string(read.vocabulary));
    }
    options.need_length(2 * read.pairs * (read.passes + 1), length);
    const std::int64_t space = (length - 2 * read.pairs * read.passes) / 2;
    for (std::int64_t i = 1; i <= space; ++i) {
        read.weights.push_back(std::pow(static_cast<double>(i), options.number("power") - 1));
    }
    Generator out;
    out.pieces = {"."};
    add_pieces(out.pieces, "k", read.vocabulary / 2 - 1);
    add_pieces(out.pieces, "v", read.vocabulary - read.vocabulary / 2);
    out.make = [=](Split split, std::uint64_t seed) { return std::make_unique<MqarSource>(length, read, split, seed); };
    return out;
}

}  // namespace headscope::data

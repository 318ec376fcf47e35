// SPDX-License-Identifier: GPL-3.0-or-later
// Markov text: stationary, so that the expected loss of the best model that sees j tokens is entropies[j] at every
// place (where fewer tokens are before, at a sequence's begin, at least that of those).
#include <algorithm>
#include <memory>

#include "core/data/generators/generators.h"
#include "core/data/generators/markov_chain.h"

namespace headscope::data {
namespace {

class MarkovSource final : public GeneratedSource {
public:
    MarkovSource(std::int64_t length, std::shared_ptr<const MarkovChain> chain, Split split, std::uint64_t seed)
        : GeneratedSource(length, chain->symbols(), split, seed), chain_(std::move(chain)) {}

private:
    void fill(Random& random, std::int64_t* ids, std::int64_t* targets) const override {
        std::vector<std::int64_t> text(static_cast<std::size_t>(length()) + 1);
        chain_->write(random, length() + 1, text.data());
        std::copy(text.begin(), text.end() - 1, ids);
        std::copy(text.begin() + 1, text.end(), targets);
    }
    std::shared_ptr<const MarkovChain> chain_;
};

}  // namespace

Generator make_markov(const GeneratorOptions& options, std::int64_t length) {
    const std::int64_t symbols = options.whole("symbols");
    const std::int64_t order = options.whole("order");
    std::int64_t entries = symbols;
    for (std::int64_t i = 0; i < order && entries <= MarkovChain::most_entries; ++i) entries *= symbols;
    if (entries > MarkovChain::most_entries) {
        options.refuse("expected symbols^(order + 1) of at most " + std::to_string(MarkovChain::most_entries),
                       "found " + std::to_string(symbols) + " symbols and order " + std::to_string(order));
    }
    const auto chain = std::make_shared<const MarkovChain>(symbols, order, options.number("sharpness"),
                                                           static_cast<std::uint64_t>(options.whole("table")));
    Generator out;
    if (symbols <= 26) {
        for (char c = 'a'; c < 'a' + symbols; ++c) out.pieces.emplace_back(1, c);
    } else {
        add_pieces(out.pieces, "s", symbols);
    }
    out.entropies = chain->entropies();
    out.make = [=](Split split, std::uint64_t seed) {
        return std::make_unique<MarkovSource>(length, chain, split, seed);
    };
    return out;
}

}  // namespace headscope::data

// SPDX-License-Identifier: GPL-3.0-or-later
// Induction (Olsson et al. 2022, "In-context learning and induction heads"): a random period p, p different symbols in
// random order, which repeat. From the second period on the next symbol follows from the last occurrence; those targets
// count. The symbols of a period differ, so there is one right answer, and p varies, so position does not give it away.
#include <algorithm>

#include "core/data/generators/generators.h"

namespace headscope::data {
namespace {

class InductionSource final : public GeneratedSource {
public:
    InductionSource(std::int64_t length, std::int64_t symbols, std::int64_t shortest, std::int64_t longest, Split split,
                    std::uint64_t seed)
        : GeneratedSource(length, symbols, split, seed), shortest_(shortest), longest_(longest) {}

private:
    void fill(Random& random, std::int64_t* ids, std::int64_t* targets) const override {
        const std::int64_t period = shortest_ + random.below(longest_ - shortest_ + 1);
        const auto symbols = draw_different(random, vocabulary(), period);
        const auto symbol = [&](std::int64_t place) { return symbols[static_cast<std::size_t>(place % period)]; };
        for (std::int64_t i = 0; i < length(); ++i) {
            ids[i] = symbol(i);
            if (i >= period) targets[i] = symbol(i + 1);
        }
    }
    std::int64_t shortest_, longest_;
};

}  // namespace

Generator make_induction(const GeneratorOptions& options, std::int64_t length) {
    const std::int64_t symbols = options.whole("symbols");
    const std::int64_t shortest = options.whole("shortest");
    if (shortest > symbols) {
        options.refuse("expected at least as many symbols as the shortest period",
                       "found " + std::to_string(symbols) + " symbols and a period of " + std::to_string(shortest));
    }
    options.need_length(shortest + 1, length);
    const std::int64_t longest = std::max(shortest, std::min(symbols, length / 2));
    Generator out;
    add_pieces(out.pieces, "s", symbols);
    out.make = [=](Split split, std::uint64_t seed) {
        return std::make_unique<InductionSource>(length, symbols, shortest, longest, split, seed);
    };
    return out;
}

}  // namespace headscope::data

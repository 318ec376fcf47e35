// SPDX-License-Identifier: GPL-3.0-or-later
// Copying: n random symbols, a separator, the same n symbols, each of which counts. A sequence of 2n tokens does not
// show the last one, which is only said; one of 2n + 1 does.
#include "core/data/generators/generators.h"

namespace headscope::data {
namespace {

constexpr std::int64_t separator = 0;

class CopySource final : public GeneratedSource {
public:
    CopySource(std::int64_t length, std::int64_t symbols, Split split, std::uint64_t seed)
        : GeneratedSource(length, symbols + 1, split, seed), symbols_(symbols) {}

private:
    void fill(Random& random, std::int64_t* ids, std::int64_t* targets) const override {
        const std::int64_t n = length() / 2;
        ids[n] = separator;
        for (std::int64_t i = 0; i < n; ++i) {
            ids[i] = 1 + random.below(symbols_);
            targets[n + i] = ids[i];
            if (n + 1 + i < length()) ids[n + 1 + i] = ids[i];
        }
    }
    std::int64_t symbols_;
};

}  // namespace

Generator make_copy(const GeneratorOptions& options, std::int64_t length) {
    options.need_length(2, length);
    const std::int64_t symbols = options.whole("symbols");
    Generator out;
    out.pieces = {"|"};
    add_pieces(out.pieces, "s", symbols);
    out.make = [=](Split split, std::uint64_t seed) {
        return std::make_unique<CopySource>(length, symbols, split, seed);
    };
    return out;
}

}  // namespace headscope::data

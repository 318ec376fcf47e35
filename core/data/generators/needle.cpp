// SPDX-License-Identifier: GPL-3.0-or-later
// A needle in a haystack: random filler with n needles "! key value" at random places, and at the end "? key" for one
// of them; its value is the only target. Keys of a sequence differ.
#include <algorithm>

#include "core/data/generators/generators.h"

namespace headscope::data {
namespace {

constexpr std::int64_t needle_mark = 0, query_mark = 1, first_key = 2;
constexpr std::int64_t needle_tokens = 3, query_tokens = 2;

struct NeedleOptions {
    std::int64_t needles, keys, values, filler;
    std::int64_t vocabulary() const { return first_key + keys + values + filler; }
};

class NeedleSource final : public GeneratedSource {
public:
    NeedleSource(std::int64_t length, NeedleOptions options, Split split, std::uint64_t seed)
        : GeneratedSource(length, options.vocabulary(), split, seed), options_(options) {}

private:
    void fill(Random& random, std::int64_t* ids, std::int64_t* targets) const override {
        const std::int64_t first_value = first_key + options_.keys;
        const std::int64_t first_filler = first_value + options_.values;
        const auto keys = draw_different(random, options_.keys, options_.needles);
        const std::int64_t asked = random.below(options_.needles);
        // Each order of needles and filler is equally likely: places among all things.
        const std::int64_t hay = length() - query_tokens - needle_tokens * options_.needles;
        auto places = draw_different(random, hay + options_.needles, options_.needles);
        std::sort(places.begin(), places.end());
        std::int64_t at = 0, answer = 0;
        std::size_t next = 0;
        for (std::int64_t thing = 0; thing < hay + options_.needles; ++thing) {
            if (next == places.size() || places[next] != thing) {
                ids[at++] = first_filler + random.below(options_.filler);
                continue;
            }
            const std::int64_t value = first_value + random.below(options_.values);
            if (static_cast<std::int64_t>(next) == asked) answer = value;
            ids[at++] = needle_mark;
            ids[at++] = first_key + keys[next++];
            ids[at++] = value;
        }
        ids[at++] = query_mark;
        ids[at] = first_key + keys[static_cast<std::size_t>(asked)];
        targets[at] = answer;
    }

    NeedleOptions options_;
};

}  // namespace

Generator make_needle(const GeneratorOptions& options, std::int64_t length) {
    const NeedleOptions read{options.whole("needles"), options.whole("keys"), options.whole("values"),
                             options.whole("filler")};
    if (read.needles > read.keys) {
        options.refuse("expected at least as many keys as needles",
                       "found " + std::to_string(read.keys) + " keys and " + std::to_string(read.needles) + " needles");
    }
    options.need_length(needle_tokens * read.needles + query_tokens, length);
    Generator out;
    out.pieces = {"!", "?"};
    add_pieces(out.pieces, "k", read.keys);
    add_pieces(out.pieces, "v", read.values);
    add_pieces(out.pieces, "h", read.filler);
    out.make = [=](Split split, std::uint64_t seed) {
        return std::make_unique<NeedleSource>(length, read, split, seed);
    };
    return out;
}

}  // namespace headscope::data

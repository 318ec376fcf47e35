// SPDX-License-Identifier: GPL-3.0-or-later
// Sentences of a made-up language whose words all end alike, class 1, or of which one does not, class 0: judging one
// wants all of its words compared. A word is a stem with one of the endings. With `pair` a sentence is cut in two
// texts. A row of tokens without items is sentences of class 1, each with a full stop.
#include <algorithm>
#include <array>

#include "core/data/generators/generators.h"

namespace headscope::data {
namespace {

constexpr std::array<const char*, 4> endings = {"a", "o", "i", "u"};
constexpr std::array<const char*, 6> begins = {"b", "d", "k", "l", "m", "t"};
constexpr std::array<const char*, 6> middles = {"en", "or", "is", "ul", "am", "et"};
constexpr std::int64_t syllables = std::int64_t{begins.size()} * std::int64_t{middles.size()};
constexpr std::int64_t full_stop = 0;

struct AgreementOptions {
    std::int64_t stems, endings, least, most;
    std::int64_t vocabulary() const { return 1 + stems * endings; }
};

/// "ben" to "tet", then two of them.
std::string stem_text(std::int64_t stem) {
    const auto at = static_cast<std::size_t>(stem % syllables);
    const std::string syllable = std::string(begins[at % begins.size()]) + middles[at / begins.size()];
    return stem < syllables ? syllable : stem_text(stem / syllables - 1) + syllable;
}

/// Words of one sentence, as ids.
std::vector<std::int64_t> sentence(Random& random, const AgreementOptions& options, bool agrees) {
    const std::int64_t ending = random.below(options.endings);
    std::vector<std::int64_t> words(
        static_cast<std::size_t>(options.least + random.below(options.most - options.least + 1)));
    for (std::int64_t& word : words) word = 1 + random.below(options.stems) * options.endings + ending;
    if (agrees) return words;
    std::int64_t& odd = words[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(words.size())))];
    odd += (ending + 1 + random.below(options.endings - 1)) % options.endings - ending;
    return words;
}

class AgreementSource final : public GeneratedSource {
public:
    AgreementSource(std::int64_t length, AgreementOptions options, Split split, std::uint64_t seed)
        : GeneratedSource(length, options.vocabulary(), split, seed), options_(options) {}

private:
    void fill(Random& random, std::int64_t* ids, std::int64_t* targets) const override {
        fill_from(
            [&](std::vector<std::int64_t>& words) {
                const auto next = sentence(random, options_, true);
                words.insert(words.end(), next.begin(), next.end());
                words.push_back(full_stop);
            },
            length(), ids, targets);
    }
    AgreementOptions options_;
};

}  // namespace

Generator make_agreement(const GeneratorOptions& options, std::int64_t length) {
    const AgreementOptions read{options.whole("stems"), options.whole("endings"), options.whole("least_words"),
                                options.whole("most_words")};
    if (read.least > read.most) {
        options.refuse("expected least_words to be at most most_words",
                       "found " + std::to_string(read.least) + " and " + std::to_string(read.most));
    }
    const bool pair = options.whole("pair") == 1;
    Generator out;
    out.classes = 2;
    out.pieces = {"."};
    for (std::int64_t stem = 0; stem < read.stems; ++stem)
        for (std::int64_t ending = 0; ending < read.endings; ++ending)
            out.pieces.push_back(stem_text(stem) + endings[static_cast<std::size_t>(ending)]);
    out.make = [=](Split split, std::uint64_t seed) {
        return std::make_unique<AgreementSource>(length, read, split, seed);
    };
    out.item = [read, pair, pieces = out.pieces](Split split, std::uint64_t seed, std::int64_t index) {
        Random random(item_key(split, seed), static_cast<std::uint64_t>(index));
        const bool agrees = random.below(std::int64_t{2}) == 1;
        const auto words = sentence(random, read, agrees);
        const auto cut = pair ? static_cast<std::ptrdiff_t>(words.size() / 2) : std::ssize(words);
        return TextItem{joined(pieces, {words.begin(), words.begin() + cut}),
                        joined(pieces, {words.begin() + cut, words.end()}), pair, agrees ? 1.0 : 0.0};
    };
    return out;
}

}  // namespace headscope::data

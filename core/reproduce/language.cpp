// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/language.h"

#include <cstdint>
#include <vector>

#include "core/data/catalog.h"
#include "core/data/random.h"

namespace headscope::reproduce {
namespace {

constexpr std::int64_t kRow = 1000;  // words of a line, or of what is read at once
constexpr std::uint64_t kSeed = 1;

/// Appends rows of a generator, a line each, of `words` words together.
void append_rows(const data::Generator& generator, std::int64_t words, std::string& text) {
    const auto source = generator.source(data::Split::training, kSeed);
    for (std::int64_t row = 0; row * kRow < words; ++row) {
        for (const std::int64_t id : source->read(row, 1).ids)
            text += generator.pieces.at(static_cast<std::size_t>(id)) + " ";
        text.back() = '\n';
    }
}

/// Likewise whole sentences, a full stop behind their last word.
void append_sentences(const data::Generator& generator, std::int64_t part, double others, std::int64_t words,
                      std::string& text) {
    const std::string& stop = generator.pieces.front();
    const char favored = generator.pieces.at(static_cast<std::size_t>(part + 1)).back();
    const auto source = generator.source(data::Split::training, kSeed + static_cast<std::uint64_t>(part));
    data::Random random(kSeed, static_cast<std::uint64_t>(part));
    std::vector<std::string> sentence;
    for (std::int64_t row = 0; words > 0; ++row) {
        sentence.clear();  // a row may end within one
        for (const std::int64_t id : source->read(row, 1).ids) {
            const std::string& piece = generator.pieces.at(static_cast<std::size_t>(id));
            if (piece != stop) {
                sentence.push_back(piece);
                continue;
            }
            if (sentence.empty()) continue;
            const bool kept = words > 0 && (sentence.front().back() == favored || random.uniform() < others);
            for (std::size_t i = 0; kept && i < sentence.size(); ++i)
                text += sentence[i] + (i + 1 < sentence.size() ? " " : stop + "\n");
            if (kept) words -= std::ssize(sentence);
            sentence.clear();
        }
    }
}

}  // namespace

std::string language_text(const JsonView& view) {
    const JsonView made = view.at("generator");
    data::GeneratorSettings settings{made.at("name").string(), {}};
    for (const std::string& key : made.keys())
        if (key != "name") settings.options[key] = made.at(key).number();
    const std::int64_t parts = view.at("parts").integer({1, 1000});
    const std::int64_t words = view.at("words").integer({parts, std::int64_t{1} << 32}) / parts;
    const bool sentences = settings.name == "agreement";
    const double table = sentences ? 0 : settings.options["table"];  // of the first part
    std::string text;
    for (std::int64_t part = 0; part < parts; ++part) {
        if (!sentences) settings.options["table"] = table + static_cast<double>(part);
        const data::Generator generator = data::make_generator(settings, kRow);
        if (sentences)
            append_sentences(generator, part, view.at("others").number(), words, text);
        else
            append_rows(generator, words, text);
    }
    return text;
}

}  // namespace headscope::reproduce

// SPDX-License-Identifier: GPL-3.0-or-later
// Words as a model with a hash embedding reads them (the picture behind Figures 2.1 to 2.5 of Xue's thesis): the bits
// of each different word of a text, and how alike two words' bits are; below them n-grams, digits and code words. Of
// several files, or hashes of words that were typed in, a row of panels each: MD5 and LSH, say.

#include <algorithm>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json/json.h"
#include "core/figures/recipe.h"
#include "core/figures/token_text.h"
#include "core/tokenizer/hashed/split.h"
#include "core/tokenizer/hashed/word_hash.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::figures {
namespace {

constexpr std::size_t kMostWords = 40;
constexpr std::int64_t kUsualGroup = 10;  ///< bits of a code word in HashFormer-Pool
constexpr std::size_t kMostNgrams = 24;   ///< of a word, in the table

struct HashedWord {
    std::string piece, hex;
    std::vector<std::uint8_t> bits;
};

struct HashedText {
    std::string name;    ///< of the model
    std::string prefix;  ///< of its panels' titles
    std::int64_t sequence = 0, group = kUsualGroup;
    std::string hash;  ///< "MD5", "LSH"
    std::vector<HashedWord> words;
    std::size_t left_out = 0;  ///< tokens of words beyond kMostWords

    /// Takes a word in that is not there yet; `bits`: makes them.
    void add(const std::string& piece, const std::string& hex, const std::function<std::vector<std::uint8_t>()>& bits) {
        const auto known = [&](const HashedWord& word) { return word.piece == piece && word.hex == hex; };
        if (hex.empty() || std::any_of(words.begin(), words.end(), known)) return;
        if (words.size() == kMostWords)
            ++left_out;
        else
            words.push_back({piece, hex, bits()});
    }
};

/// The embedding in the analysis's configuration; empty without one.
nlohmann::json embedding_of(const store::AnalysisFile& file) {
    const nlohmann::json config = parse_json(file.header().config_json, "/model/config");
    const auto embedding = JsonView(config, "/model/config").find("embedding");
    return embedding ? embedding->object().value() : nlohmann::json::object();
}

HashedText read(const store::AnalysisFile& file, const std::string& name, std::int64_t sequence) {
    HashedText text;
    text.name = name;
    text.sequence = sequence;
    const nlohmann::json document = embedding_of(file);
    const JsonView embedding(document, "/model/config", "embedding");
    text.group = embedding.integer_or("group_bits", kUsualGroup, {1, 30});
    text.hash = embedding.string_or("hash", "") == "lsh" ? "LSH" : "MD5";
    const auto& tokens = file.header().sequences.at(static_cast<std::size_t>(sequence));
    std::int64_t bits = embedding.integer_or("bits", 0, {0, 1 << 20});
    for (std::size_t i = 0; i < tokens.hashes.size(); ++i) {
        const std::string& hex = tokens.hashes[i];
        text.add(tokens.pieces[i], hex, [&] {
            if (bits == 0) bits = 4 * std::ssize(hex);
            std::vector<std::uint8_t> read(static_cast<std::size_t>(bits));
            tokenizer::read_bits_hex(hex, read, file_name(file) + ", /tokens/hash, token " + std::to_string(i));
            return read;
        });
    }
    if (text.words.empty()) {
        throw Error(ErrorCode::usage, "figure hash of " + file_name(file),
                    "expected a text whose words have bits, read by a model with a hash embedding", "found none");
    }
    return text;
}

HashedText hashed(const NamedHash& named, const std::string& words) {
    const tokenizer::HashSettings& settings = named.hash->settings();
    HashedText text;
    text.hash = settings.hash == tokenizer::WordHashKind::lsh ? "LSH" : "MD5";
    text.name = named.name.empty() ? text.hash : named.name;
    if (!named.name.empty()) text.prefix = named.name + ", ";
    if (settings.group_bits > 0) text.group = settings.group_bits;
    tokenizer::split_words(words, [&](const tokenizer::SplitWord& word) {
        const std::string piece(word.piece);
        text.add(piece, named.hash->hex(piece), [&] {
            std::vector<std::uint8_t> bits(static_cast<std::size_t>(settings.shown_bits()));
            named.hash->bits(piece, bits);
            return bits;
        });
    });
    return text;
}

std::int64_t differing(const HashedWord& a, const HashedWord& b) {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < a.bits.size(); ++i) count += a.bits[i] != b.bits[i] ? 1 : 0;
    return count;
}

/// Cosine of the bits as -1 and 1.
double cosine(const HashedWord& a, const HashedWord& b) {
    return 1 - 2 * static_cast<double>(differing(a, b)) / static_cast<double>(a.bits.size());
}

std::vector<std::string> labels_of(const HashedText& text) {
    std::vector<std::string> labels;
    for (const HashedWord& word : text.words) labels.push_back(visible_token(word.piece));
    return labels;
}

Panel bits_panel(const HashedText& text) {
    Panel panel;
    panel.title = text.prefix + text.hash + ", bits";
    panel.x.label = "bit";
    panel.y.cell_labels = labels_of(text);
    HeatMap map;
    map.rows = std::ssize(text.words);
    map.columns = std::ssize(text.words.front().bits);
    for (const HashedWord& word : text.words) map.values.insert(map.values.end(), word.bits.begin(), word.bits.end());
    map.colours.label = "bit";
    map.pooling = Pooling::mean;
    panel.content = std::move(map);
    return panel;
}

Panel cosine_panel(const HashedText& text) {
    Panel panel;
    panel.title = text.prefix + text.hash + ", cosine similarity";
    panel.x.cell_labels = panel.y.cell_labels = labels_of(text);
    HeatMap map;
    map.rows = map.columns = std::ssize(text.words);
    for (const HashedWord& a : text.words)
        for (const HashedWord& b : text.words) map.values.push_back(static_cast<float>(cosine(a, b)));
    map.colours.label = "cosine similarity of the bits";
    map.colours.map = ColourMap::diverging;
    map.colours.minimum = -1;
    map.write_values = true;
    panel.content = std::move(map);
    return panel;
}

std::string ngrams_text(const std::string& word) {
    std::string text;
    std::size_t count = 0;
    tokenizer::each_ngram_text(tokenizer::repaired_utf8(word), [&](const std::string& ngram) {
        if (count++ < kMostNgrams) text += (text.empty() ? "" : " ") + visible_token(ngram);
    });
    if (count > kMostNgrams) text += " … " + std::to_string(count - kMostNgrams) + " more";
    return text;
}

TextTable words_table(const std::vector<HashedText>& texts) {
    TextTable table;
    table.header = {"word", "n-grams", "model", "bits", "codes"};
    table.words = 2;  // where all do not fit the n-grams give way
    table.more_words = {2, 3, 4};
    for (const HashedText& text : texts) {
        for (const HashedWord& word : text.words) {
            std::string codes;
            for (const std::int32_t code : tokenizer::codes_of(word.bits, text.group))
                codes += (codes.empty() ? "" : " ") + std::to_string(code);
            // Bits that were given instead of a word have no n-grams.
            const std::string ngrams = word.piece == "#" + word.hex ? "–" : ngrams_text(word.piece);
            table.rows.push_back({visible_token(word.piece), ngrams, text.name, word.hex, codes});
        }
    }
    return table;
}

/// A row for each pair of words.
Table pairs_table(const std::vector<HashedText>& texts) {
    std::vector<std::string> models, hashes, words, others, first_bits, other_bits;
    std::vector<std::int64_t> sequences, counts;
    std::vector<double> cosines;
    for (const HashedText& text : texts) {
        for (const HashedWord& a : text.words) {
            for (const HashedWord& b : text.words) {
                models.push_back(text.name);
                sequences.push_back(text.sequence);
                hashes.push_back(text.hash);
                words.push_back(a.piece);
                others.push_back(b.piece);
                first_bits.push_back(a.hex);
                other_bits.push_back(b.hex);
                counts.push_back(differing(a, b));
                cosines.push_back(cosine(a, b));
            }
        }
    }
    return {{{"model", models},
             {"sequence", sequences},
             {"hash", hashes},
             {"word", words},
             {"other", others},
             {"bits", first_bits},
             {"other_bits", other_bits},
             {"differing", counts},
             {"cosine", cosines}}};
}

FigureData draw_hashes(std::vector<HashedText> texts) {
    FigureData figure;
    figure.title = "Hashes of words";
    figure.columns = 2;
    figure.reflow = true;
    figure.narrowest_mm = 50;
    for (const HashedText& text : texts) {
        figure.panels.push_back(bits_panel(text));
        figure.panels.push_back(cosine_panel(text));
        if (text.left_out > 0)
            figure.notes.push_back(text.prefix + "the first " + std::to_string(kMostWords) + " different words; " +
                                   std::to_string(text.left_out) + " tokens of other words are left out");
    }
    figure.notes.push_back("cosine similarity of bits read as -1 and 1; codes are groups of " +
                           std::to_string(texts.front().group) + " bits, from the first one");
    figure.text_table = words_table(texts);
    figure.table = [texts = std::move(texts)] { return pairs_table(texts); };
    return figure;
}

FigureData hash(Files files, const FigureOptions& options) {
    if (!options.words.empty()) {
        throw Error(ErrorCode::usage, "--words", "expected md5, lsh or checkpoints that hash them",
                    "found analysis files, which have a text of their own");
    }
    const auto names = file_labels(files, options);
    std::vector<HashedText> texts;
    for (std::size_t f = 0; f < files.size(); ++f) {
        for (const auto s : chosen_sequences(*files[f], options)) {
            HashedText text = read(*files[f], names[f], s);
            if (files.size() > 1) text.prefix = text.name + ", ";
            if (options.all_sequences) text.prefix += "sequence " + std::to_string(s) + ", ";
            texts.push_back(std::move(text));
        }
    }
    return draw_hashes(std::move(texts));
}

FigureData hash_words(const FigureInputs& inputs, const FigureOptions& options) {
    std::vector<HashedText> texts;
    for (const NamedHash& named : inputs.hashes) texts.push_back(hashed(named, options.words));
    if (texts.front().words.empty()) {
        throw Error(ErrorCode::usage, "--words", "expected a text with words to hash",
                    options.words.empty() ? "found none" : "found nothing but white space");
    }
    return draw_hashes(std::move(texts));
}

}  // namespace

extern const Recipe kHash{
    .name = "hash",
    .description =
        "bits of a text's words, or of those of --words, and how alike they "
        "are, with n-grams and code words; MD5 and LSH side by side",
    .needs =
        "a model with a hash embedding; --words: md5, lsh or checkpoints "
        "with one",
    .of_analyses = hash,
    .of_others = hash_words,
    .others = RecipeInputs::hashes,
    .options = {"layer", "sequence", "names", "words"},
};

}  // namespace headscope::figures

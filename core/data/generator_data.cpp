// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/generator_data.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/io/sha256.h"
#include "core/data/batch/item_reader.h"
#include "core/data/batch/objective_reader.h"
#include "core/data/catalog.h"
#include "core/data/objectives/list.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::data {
namespace {

std::string word_level_json(const std::vector<std::string>& pieces) {
    using Json = nlohmann::ordered_json;
    Json::object_t vocabulary;
    for (std::size_t id = 0; id < pieces.size(); ++id) vocabulary.emplace_back(pieces[id], id);
    const Json document = {
        {"version", "1.0"},
        {"truncation", nullptr},
        {"padding", nullptr},
        {"added_tokens", Json::array()},
        {"normalizer", nullptr},
        {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
        {"post_processor", nullptr},
        {"decoder", nullptr},
        {"model", {{"type", "WordLevel"}, {"vocab", std::move(vocabulary)}, {"unk_token", "[none]"}}}};
    return document.dump(1) + "\n";
}

/// The generator's own words, or bytes.
ChosenTokenizer own_tokenizer(const Generator& generator) {
    if (generator.bytes) return byte_tokenizer();
    const nlohmann::ordered_json settings = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                             {"clean_up_tokenization_spaces", false}};
    ChosenTokenizer own =
        tokenizer_from(word_level_json(generator.pieces), settings.dump(1) + "\n", "generator " + generator.name);
    own.separator = -1;
    return own;
}

/// Items are text, which a tokenizer may be named for; else it is the generator's own, as with all others.
ChosenTokenizer choose(const Generator& generator, const DataSettings& settings, const DataPlaces& places,
                       const HashedWords* words) {
    if (words != nullptr) return word_tokenizer(*words);
    if (reads_items(settings.objective) && settings.tokenizer != DataSettings().tokenizer) {
        if (trained_size(settings.tokenizer)) {
            throw Error(ErrorCode::usage, "data.tokenizer",
                        "expected a tokenizer.json or a folder with a tokenizer, or none: the generator's own words",
                        "found " + settings.tokenizer);
        }
        return tokenizer_at(places.base / settings.tokenizer);
    }
    ChosenTokenizer own = own_tokenizer(generator);
    return kind_of(settings.objective).reads_stream() ? own : with_special_tokens(own, "generator " + generator.name);
}

void check(const Generator& generator, const ObjectiveSettings& objective) {
    if (!reads_items(objective)) return;
    const std::int64_t classes = kind_of(objective).labels() ? objective.classes : 0;
    const bool spans = kind_of(objective).spans;
    if (!spans && generator.item && generator.classes == classes) return;
    throw Error(ErrorCode::usage, "data.generator",
                "expected one that makes items for the objective " + objective.kind +
                    (classes > 0 ? " with " + std::to_string(classes) + " classes" : std::string()),
                "found " + generator.name +
                    (!generator.item          ? ", which makes none"
                     : generator.classes == 0 ? ", which makes translations"
                                              : ", which has " + std::to_string(generator.classes) + " classes"));
}

/// A generator's rows for encoders that hash its words: its text, as its own tokenizer spells it, as long as it takes.
std::vector<std::int64_t> hashed_row(const BatchSource& rows, const tokenizer::Tokenizer& spelling,
                                     const TokenCode& code, std::int64_t index, std::int64_t tokens) {
    constexpr std::int64_t most_rows = 64;  // of bytes, several make as many words as one has tokens
    const auto wanted = static_cast<std::size_t>(tokens * code.width());
    std::vector<std::int64_t> numbers;
    for (std::int64_t row = 0; row < most_rows && numbers.size() < wanted; ++row) {
        const std::vector<std::int64_t> ids = rows.read(index * most_rows + row, 1).ids;
        const std::vector<std::int32_t> narrow(ids.begin(), ids.end());
        const std::vector<std::int32_t> more = code.encode(spelling.decode(narrow), nullptr);
        numbers.insert(numbers.end(), more.begin(), more.end());
    }
    if (numbers.size() < wanted) {
        throw Error(ErrorCode::usage, "data.generator", "expected words for a hash embedding",
                    "found too few in the generator's text");
    }
    numbers.resize(wanted);
    return numbers;
}

class GeneratorData final : public DataSet {
public:
    GeneratorData(Generator generator, const DataSettings& settings, ChosenTokenizer chosen)
        : generator_(std::move(generator)),
          items_(reads_items(settings.objective)),
          validates_(settings.validation > 0) {
        if (!kind_of(settings.objective).reads_stream()) objective_.emplace(settings, chosen);
        tokenizer_ = std::move(chosen.tokenizer);
        tokenizer_files_ = std::move(chosen.files);
        separator_ = objective_ ? objective_->separator() : chosen.separator;
        if (objective_) special_ = objective_->special();
        vocabulary_ = objective_ ? tokenizer_->vocabulary_size() : static_cast<std::int64_t>(generator_.pieces.size());
        std::string content =
            "generator\n" + generator_.settings + "\n" + std::to_string(settings.sequence_length) + "\n";
        if (objective_) content += objective_->key() + "\n" + chosen.sha256 + "\n";
        hash_ = sha256_hex(content);
        summary_.name = "generator " + generator_.name;
        summary_.entropies = generator_.entropies;
    }

    std::unique_ptr<const BatchSource> source(Split split, std::uint64_t seed) const override {
        if (split == Split::validation && !validates_) return nullptr;
        if (split == Split::validation) seed = 0;
        if (!objective_) return generator_.source(split, seed);
        if (items_) {
            const auto make = [item = generator_.item, split, seed](std::int64_t index) {
                return item(split, seed, index);
            };
            return objective_->source(made_items(make, objective_->code()));
        }
        std::shared_ptr<const BatchSource> rows = generator_.source(split, seed);
        if (!objective_->code().hashed())
            return objective_->source({0, [rows](std::int64_t index) { return rows->read(index, 1).ids; }}, seed);
        const auto spelling = own_tokenizer(generator_).tokenizer;
        const auto read = [rows, spelling, code = objective_->code(), tokens = objective_->row_tokens()](
                              std::int64_t index) { return hashed_row(*rows, *spelling, code, index, tokens); };
        return objective_->source({0, read}, seed);
    }

private:
    Generator generator_;
    bool items_;
    std::optional<ObjectiveReader> objective_;  ///< none: next_token
    bool validates_;
};

}  // namespace

std::shared_ptr<const DataSet> prepare_generator(const DataSettings& settings, const DataPlaces& places,
                                                 const HashedWords* words) {
    const bool encoder = kind_of(settings.objective).data == ObjectiveData::corrupted;
    const std::int64_t ends = encoder ? 2 : 0;  // <s> and </s> around its tokens
    if (settings.sequence_length <= ends) {
        throw Error(ErrorCode::usage, "data.sequence_length", "expected a number above " + std::to_string(ends),
                    "found " + std::to_string(settings.sequence_length));
    }
    Generator generator = make_generator(*settings.generator, settings.sequence_length - ends);
    check(generator, settings.objective);
    ChosenTokenizer chosen = choose(generator, settings, places, words);
    return std::make_shared<GeneratorData>(std::move(generator), settings, std::move(chosen));
}

}  // namespace headscope::data

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/generator_data.h"

#include <nlohmann/json.hpp>

#include "core/base/sha256.h"
#include "core/data/catalog.h"
#include "core/data/tokenizer_choice.h"
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

class GeneratorData final : public DataSet {
public:
    GeneratorData(Generator generator, std::int64_t length, bool validates)
        : generator_(std::move(generator)), validates_(validates) {
        if (generator_.bytes) {
            ChosenTokenizer chosen = byte_tokenizer();
            tokenizer_ = std::move(chosen.tokenizer);
            tokenizer_files_ = std::move(chosen.files);
            separator_ = chosen.separator;
        } else {
            const std::string json = word_level_json(generator_.pieces);
            tokenizer_ = tokenizer::Tokenizer::from_json(json, "generator " + generator_.name);
            const nlohmann::ordered_json settings = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                                     {"clean_up_tokenization_spaces", false}};
            tokenizer_files_ = {{"tokenizer.json", json}, {"tokenizer_config.json", settings.dump(1) + "\n"}};
        }
        vocabulary_ = static_cast<std::int64_t>(generator_.pieces.size());
        hash_ = sha256_hex("generator\n" + generator_.settings + "\n" + std::to_string(length) + "\n");
        summary_.name = "generator " + generator_.name;
        summary_.entropies = generator_.entropies;
    }

    std::unique_ptr<const BatchSource> source(Split split, std::uint64_t seed) const override {
        if (split == Split::validation && !validates_) return nullptr;
        return generator_.source(split, split == Split::validation ? 0 : seed);
    }

private:
    Generator generator_;
    bool validates_;
};

}  // namespace

std::shared_ptr<const DataSet> prepare_generator(const DataSettings& settings) {
    return std::make_shared<GeneratorData>(make_generator(*settings.generator, settings.sequence_length),
                                           settings.sequence_length, settings.validation > 0);
}

}  // namespace headscope::data

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/special_tokens.h"

#include <array>
#include <cstddef>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/tokenizer/hashed/settings.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 5> kNames = {"<s>", "<pad>", "</s>", "<unk>", "<mask>"};
enum Place { kFirst, kPadding, kLast, kUnknown, kMask };

std::vector<std::int64_t> added_special_ids(const tokenizer::Tokenizer& tokenizer,
                                            const std::vector<TokenizerFile>& files) {
    std::vector<std::int64_t> ids;
    for (const TokenizerFile& file : files) {
        if (file.name != "tokenizer.json") continue;
        const nlohmann::json document = parse_json(file.content, file.name);
        const auto list = JsonView(document, file.name).find("added_tokens");
        for (std::size_t i = 0; list && i < list->size(); ++i) {
            const JsonView token = list->at(i);
            if (!token.boolean_or("special", false)) continue;
            if (const auto id = tokenizer.id_of(token.at("content").string())) ids.push_back(*id);
        }
    }
    return ids;
}

/// Sorts inserted tokens by what they stand beside.
class FrameSink final : public tokenizer::TokenSink {
public:
    void add(const tokenizer::FoundToken& token) override {
        if (token.region != 0)
            region = token.region;
        else
            parts.at(region).push_back(token.id);
    }
    std::array<std::vector<std::int64_t>, 3> parts;  ///< before the first text, behind it, behind the second
    std::size_t region = 0;
};

}  // namespace

SpecialIds special_ids(const tokenizer::Tokenizer& tokenizer, const std::vector<TokenizerFile>& files) {
    if (tokenizer.word_hash() != nullptr) return {kFirst, kLast, kPadding, kMask, {kUnknown}};
    const auto find = [&](std::initializer_list<const char*> keys, std::initializer_list<const char*> usual) {
        return special_id(tokenizer, files, keys, usual).value_or(-1);
    };
    SpecialIds out;
    out.first = find({"cls_token", "bos_token"}, {"[CLS]", kNames[kFirst]});
    out.last = find({"sep_token", "eos_token"}, {"[SEP]", kNames[kLast]});
    out.padding = find({"pad_token"}, {"[PAD]", kNames[kPadding]});
    out.mask = find({"mask_token"}, {"[MASK]", kNames[kMask]});
    out.others = added_special_ids(tokenizer, files);
    out.others.push_back(find({"unk_token"}, {"[UNK]", kNames[kUnknown]}));
    return out;
}

Frame frame_of(const tokenizer::Tokenizer& tokenizer) {
    constexpr auto text = "a";
    FrameSink one, two;
    tokenizer.encode_into(one, text);
    tokenizer.encode_pair_into(two, text, text);
    return {one.parts[0], one.parts[1], two.parts[0], two.parts[1], two.parts[2]};
}

ChosenTokenizer with_special_tokens(const ChosenTokenizer& made, const std::string& where) {
    Json document = Json::parse(made.files.at(0).content);
    std::array<std::int64_t, kNames.size()> ids{};
    for (std::size_t i = 0; i < kNames.size(); ++i) {
        ids[i] = made.tokenizer->vocabulary_size() + static_cast<std::int64_t>(i);
        document["added_tokens"].push_back({{"id", ids[i]},
                                            {"content", kNames[i]},
                                            {"single_word", false},
                                            {"lstrip", false},
                                            {"rstrip", false},
                                            {"normalized", false},
                                            {"special", true}});
    }
    const auto special = [](Place place) { return Json{{"SpecialToken", {{"id", kNames[place]}, {"type_id", 0}}}}; };
    const auto text = [](const char* name) { return Json{{"Sequence", {{"id", name}, {"type_id", 0}}}}; };
    const auto entry = [&](Place place) {
        return Json{
            {"id", kNames[place]}, {"ids", Json::array({ids[place]})}, {"tokens", Json::array({kNames[place]})}};
    };
    document["post_processor"] = {
        {"type", "TemplateProcessing"},
        {"single", {special(kFirst), text("A"), special(kLast)}},
        {"pair", {special(kFirst), text("A"), special(kLast), special(kLast), text("B"), special(kLast)}},
        {"special_tokens", {{kNames[kFirst], entry(kFirst)}, {kNames[kLast], entry(kLast)}}}};
    const Json settings = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                           {"bos_token", kNames[kFirst]},
                           {"cls_token", kNames[kFirst]},
                           {"pad_token", kNames[kPadding]},
                           {"eos_token", kNames[kLast]},
                           {"sep_token", kNames[kLast]},
                           {"unk_token", kNames[kUnknown]},
                           {"mask_token", kNames[kMask]},
                           {"clean_up_tokenization_spaces", false}};
    return tokenizer_from(document.dump(1) + "\n", settings.dump(1) + "\n", where);
}

}  // namespace headscope::data

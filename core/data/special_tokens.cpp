// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/special_tokens.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.h"
#include "core/base/json/json.h"
#include "core/tokenizer/hashed/settings.h"

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

bool repeats_a_text(const std::vector<tokenizer::FramePart>& parts) {
    for (const int text : {0, 1}) {
        const auto is_it = [text](const tokenizer::FramePart& part) { return !part.token && part.text == text; };
        if (std::count_if(parts.begin(), parts.end(), is_it) > 1) return true;
    }
    return false;
}

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

std::int64_t Frame::inserted(bool pair) const {
    const auto& parts = pair ? two : one;
    return std::count_if(parts.begin(), parts.end(), [](const auto& part) { return part.token.has_value(); });
}

bool Frame::has_types() const {
    return std::any_of(two.begin(), two.end(), [](const auto& part) { return part.type != 0; });
}

Frame frame_of(const tokenizer::Tokenizer& tokenizer) {
    Frame frame{tokenizer.frame(false), tokenizer.frame(true)};
    if (repeats_a_text(frame.one) || repeats_a_text(frame.two))
        throw Error(ErrorCode::usage, "data.tokenizer", "expected a tokenizer that reads each text once",
                    "found one whose post_processor repeats a text");
    return frame;
}

void end_sources(Frame& frame, std::int64_t end) {
    if (frame.inserted(false) > 0) return;
    tokenizer::FramePart part;
    part.token = static_cast<std::int32_t>(end);
    frame.one.push_back(part);
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
    Json& model = document["model"];
    if (model.at("type") == "WordLevel") {  // which must know its <unk>
        for (std::size_t i = 0; i < kNames.size(); ++i) model["vocab"][kNames[i]] = ids[i];
        model["unk_token"] = kNames[kUnknown];
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

// SPDX-License-Identifier: GPL-3.0-or-later
// How byte-level vocabularies cut a text into words: the pre-tokenizers of the models' own tokenizer.json files, by the
// names that llama.cpp gives them.
#include <algorithm>
#include <array>

#include "core/checkpoint/gguf/vocabulary/vocabulary.h"

namespace headscope::checkpoint::gguf {
namespace {

using nlohmann::json;

enum class Rule {
    gpt2,
    digits,  ///< each digit, then GPT-2's
    llama3,
    qwen2,
    qwen35,
    tekken,
    gpt4o,
    deepseek3,
    deepseek_coder,
    falcon,
    bloom,
    seed_coder,
    exaone_moe,
    bailing,
};

struct NamedSplit {
    std::string_view name;
    Rule rule;
    bool ignore_merges = false;
    bool adds_first = false;
};

constexpr std::array kSplits{
    NamedSplit{"gpt-2", Rule::gpt2},
    NamedSplit{"phi-2", Rule::gpt2},
    NamedSplit{"jina-es", Rule::gpt2},
    NamedSplit{"jina-de", Rule::gpt2},
    NamedSplit{"jina-v2-es", Rule::gpt2},
    NamedSplit{"jina-v2-de", Rule::gpt2},
    NamedSplit{"gigachat", Rule::gpt2},
    NamedSplit{"a.x-4.0", Rule::gpt2},
    NamedSplit{"mellum", Rule::gpt2},
    NamedSplit{"modern-bert", Rule::gpt2},
    NamedSplit{"exaone4", Rule::gpt2},
    NamedSplit{"mpt", Rule::gpt2},
    NamedSplit{"olmo", Rule::gpt2},
    NamedSplit{"jais", Rule::gpt2},
    NamedSplit{"trillion", Rule::gpt2},
    NamedSplit{"granite-docling", Rule::gpt2},
    NamedSplit{"starcoder", Rule::digits},
    NamedSplit{"refact", Rule::digits},
    NamedSplit{"command-r", Rule::digits},
    NamedSplit{"smollm", Rule::digits},
    NamedSplit{"codeshell", Rule::digits},
    NamedSplit{"exaone", Rule::digits},
    NamedSplit{"minerva-7b", Rule::digits},
    NamedSplit{"mellum2", Rule::digits},
    NamedSplit{"llama3", Rule::llama3, true, true},
    NamedSplit{"llama-v3", Rule::llama3, true, true},
    NamedSplit{"llama-bpe", Rule::llama3, true, true},
    NamedSplit{"falcon3", Rule::llama3, true, true},
    NamedSplit{"falcon-h1", Rule::llama3, true, true},
    NamedSplit{"pixtral", Rule::llama3, true, true},
    NamedSplit{"midm-2.0", Rule::llama3, true, true},
    NamedSplit{"lfm2", Rule::llama3, true, true},
    NamedSplit{"jina-v5-nano", Rule::llama3, true, true},
    NamedSplit{"dbrx", Rule::llama3},
    NamedSplit{"smaug-bpe", Rule::llama3},
    NamedSplit{"chatglm-bpe", Rule::llama3},
    NamedSplit{"glm4", Rule::llama3, true},
    NamedSplit{"glm5", Rule::llama3, true},
    NamedSplit{"qwen2", Rule::qwen2},
    NamedSplit{"deepseek-r1-qwen", Rule::qwen2},
    NamedSplit{"kormo", Rule::qwen2},
    NamedSplit{"f2llmv2", Rule::qwen2},
    NamedSplit{"stablelm2", Rule::qwen2},
    NamedSplit{"megrez", Rule::qwen2},
    NamedSplit{"hunyuan", Rule::qwen2},
    NamedSplit{"solar-open", Rule::qwen2},
    NamedSplit{"grok-2", Rule::qwen2},
    NamedSplit{"qwen35", Rule::qwen35},
    NamedSplit{"tekken", Rule::tekken, true, true},
    NamedSplit{"gpt-4o", Rule::gpt4o},
    NamedSplit{"llama4", Rule::gpt4o},
    NamedSplit{"kanana2", Rule::gpt4o},
    NamedSplit{"talkie", Rule::gpt4o},
    NamedSplit{"minimax-m2", Rule::gpt4o},
    NamedSplit{"deepseek-v3", Rule::deepseek3},
    NamedSplit{"hunyuan-dense", Rule::deepseek3},
    NamedSplit{"joyai-llm", Rule::deepseek3},
    NamedSplit{"deepseek-coder", Rule::deepseek_coder},
    NamedSplit{"falcon", Rule::falcon},
    NamedSplit{"bloom", Rule::bloom},
    NamedSplit{"poro-chat", Rule::bloom},
    NamedSplit{"gpt3-finnish", Rule::bloom},
    NamedSplit{"seed-coder", Rule::seed_coder},
    NamedSplit{"exaone-moe", Rule::exaone_moe},
    NamedSplit{"bailingmoe", Rule::bailing},
    NamedSplit{"bailingmoe2", Rule::bailing},
    NamedSplit{"llada-moe", Rule::bailing},
};

constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)"
    R"(|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)"
    R"(|\s+(?!\S)|\s+)";
constexpr const char* kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kTekken = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
                                R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
                                R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kDeepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kSeedCoder =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+)"
    R"(|\s+(?!\S)|\s+)";
constexpr const char* kExaoneMoe =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr const char* kBailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr const char* kFalconMarks = R"([\p{P}\$\+<=>\^~\|`]+)";
constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";
constexpr const char* kBloom = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+";
constexpr const char* kHanAndKana = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";
constexpr const char* kHanAndHangul = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+";

json split(const char* pattern) {
    return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
}

json byte_level(bool by_words) {
    return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", by_words}};
}

json digits(bool each) {
    return {{"type", "Digits"}, {"individual_digits", each}};
}

json in_order(json members) {
    return {{"type", "Sequence"}, {"pretokenizers", std::move(members)}};
}

json pre_tokenizer(Rule rule) {
    switch (rule) {
        case Rule::gpt2:
            return byte_level(true);
        case Rule::digits:
            return in_order({digits(true), byte_level(true)});
        case Rule::llama3:
            return in_order({split(kLlama3), byte_level(false)});
        case Rule::qwen2:
            return in_order({split(kQwen2), byte_level(false)});
        case Rule::qwen35:
            return in_order({split(kQwen35), byte_level(false)});
        case Rule::tekken:
            return in_order({split(kTekken), byte_level(false)});
        case Rule::gpt4o:
            return in_order({split(kGpt4o), byte_level(false)});
        case Rule::deepseek3:
            return in_order({split(R"(\p{N}{1,3})"), split(kHanAndKana), split(kDeepseek3), byte_level(false)});
        case Rule::deepseek_coder:
            return in_order({split(R"([\r\n])"), split(R"(\s?\p{L}+)"), split(R"(\s?\p{P}+)"), split(kHanAndHangul),
                             digits(true), byte_level(false)});
        case Rule::falcon:  // as llama.cpp has it
            return in_order({split(kFalconMarks), split(kGpt2), split("[0-9][0-9][0-9]"), byte_level(false)});
        case Rule::bloom:
            return in_order({split(kBloom), byte_level(false)});
        case Rule::seed_coder:
            return in_order({split(kSeedCoder), byte_level(false)});
        case Rule::exaone_moe:
            return in_order({split(kExaoneMoe), byte_level(false)});
        case Rule::bailing:
            return in_order({split(kBailing), byte_level(false)});
    }
    return nullptr;
}

}  // namespace

std::optional<Split> split_named(std::string_view name) {
    const auto* found =
        std::find_if(kSplits.begin(), kSplits.end(), [name](const NamedSplit& one) { return one.name == name; });
    if (found == kSplits.end()) return std::nullopt;
    return Split{pre_tokenizer(found->rule), found->ignore_merges, found->adds_first};
}

}  // namespace headscope::checkpoint::gguf

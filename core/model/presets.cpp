// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/presets.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text.h"

namespace headscope::model {
namespace {

constexpr std::int64_t kPaperVocabulary = 50'304;
/// Bytes and the end of a text; jobs write what their tokenizer has.
constexpr std::int64_t kByteVocabulary = 257;

[[noreturn]] void refuse(const std::string& what, const std::vector<std::string>& known, const std::string& found) {
    throw Error(ErrorCode::usage, what, "expected one of " + list_text(known, 30), "found " + escaped(found));
}

/// True if layer `layer` of `count`, both from 1, is standard.
bool is_standard(std::string_view layout, std::int64_t layer, std::int64_t count) {
    if (layout == "uniform") return false;
    if (layout == "even") return layer % 2 == 0;
    if (layout == "odd") return layer % 2 == 1;
    if (layout == "top") return layer <= count / 2;
    if (layout == "middle") return layer <= count / 4 || layer > 3 * count / 4;
    if (layout == "bottom") return layer > count / 2;
    if (layout == "quarter") return layer % 4 == 0;
    if (layout == "first") return layer == 1;
    if (layout == "last") return layer == count;
    return layer == 1 || layer == count;  // bilateral
}

// NAtS-L's six models (section 5 and appendix A.1; the kernel of convolutions is 4, a value is twice a key, 64 tokens
// are a chunk), and the same for a laptop.
struct NatslSize {
    const char *natsl, *natsl_hybrid, *gdn, *gdn_hybrid, *mamba2, *transformer;  // names
    const char* printed[6];
    std::int64_t hidden, feed_forward, transformer_feed_forward;
    std::int64_t layers, hybrid_layers, transformer_layers, mamba2_layers;
    std::vector<std::int64_t> natsl_at, standard_at;  // of the hybrids, from 0
    std::int64_t transformer_heads, vocabulary, positions;
    const char *natsl_options, *natsl_hybrid_options, *gdn_options, *mamba2_options;
};

std::vector<std::string> mostly(const char* mixer, std::int64_t layers, const char* other,
                                const std::vector<std::int64_t>& at) {
    std::vector<std::string> list(static_cast<std::size_t>(layers), mixer);
    for (const std::int64_t layer : at) list.at(static_cast<std::size_t>(layer)) = other;
    return list;
}

void add_size(std::vector<Preset>& list, const NatslSize& size) {
    const auto add = [&](const char* name, int number, std::int64_t feed_forward, const char* summary,
                         std::vector<std::string> mixers, const char* options) {
        list.push_back({name, size.hidden, feed_forward, static_cast<std::int64_t>(mixers.size()),
                        size.transformer_heads, size.vocabulary, size.positions, Preset::llama, size.printed[number],
                        summary, std::move(mixers), options});
    };
    add(size.natsl, 0, size.feed_forward, "NAtS-L in every layer", mostly("natsl", size.layers, "", {}),
        size.natsl_options);
    add(size.natsl_hybrid, 1, size.feed_forward, "Gated DeltaNet, and NAtS-L in some layers",
        mostly("gated_deltanet", size.layers, "natsl", size.natsl_at), size.natsl_hybrid_options);
    add(size.gdn, 2, size.feed_forward, "Gated DeltaNet", mostly("gated_deltanet", size.layers, "", {}),
        size.gdn_options);
    add(size.gdn_hybrid, 3, size.feed_forward, "Gated DeltaNet, and softmax in some layers",
        mostly("gated_deltanet", size.hybrid_layers, "standard", size.standard_at), size.gdn_options);
    add(size.mamba2, 4, 0, "Mamba2, no feed-forward", mostly("mamba2", size.mamba2_layers, "", {}),
        size.mamba2_options);
    add(size.transformer, 5, size.transformer_feed_forward, "softmax attention in the manner of Llama",
        mostly("standard", size.transformer_layers, "", {}), "{}");
}

void add_natsl(std::vector<Preset>& list) {
    const std::vector<std::int64_t> natsl_at{3, 7, 11, 15, 19, 20}, standard_at{3, 7, 11, 15, 19};
    add_size(list, {"natsl-380m",
                    "natsl-hybrid-380m",
                    "gdn-380m",
                    "gdn-hybrid-380m",
                    "mamba2-380m",
                    "transformer-380m",
                    {"380M", "380M", "380M", "380M", "380M", "380M"},
                    1024,
                    2816,
                    2816,
                    21,
                    22,
                    24,
                    48,
                    natsl_at,
                    standard_at,
                    16,
                    32'000,
                    4096,
                    R"({"natsl": {"num_heads": 6, "head_dim": 128, "num_softmax_heads": 12}})",
                    R"({"natsl": {"num_heads": 6, "head_dim": 128, "num_softmax_heads": 12, "rotary": false},
                        "gated_deltanet": {"num_heads": 6, "head_dim": 128}})",
                    R"({"gated_deltanet": {"num_heads": 6, "head_dim": 128}})",
                    R"({"mamba2": {"num_heads": 32, "head_dim": 64, "state_size": 128}})"});
    add_size(list, {"natsl-800m",
                    "natsl-hybrid-800m",
                    "gdn-800m",
                    "gdn-hybrid-800m",
                    "mamba2-800m",
                    "transformer-800m",
                    {"794M", "793M", "793M", "802M", "801M", "778M"},
                    1536,
                    4096,
                    4096,
                    21,
                    22,
                    24,
                    48,
                    natsl_at,
                    standard_at,
                    24,
                    32'000,
                    4096,
                    R"({"natsl": {"num_heads": 6, "head_dim": 192, "num_softmax_heads": 18}})",
                    R"({"natsl": {"num_heads": 6, "head_dim": 192, "num_softmax_heads": 18, "rotary": false},
                        "gated_deltanet": {"num_heads": 6, "head_dim": 192}})",
                    R"({"gated_deltanet": {"num_heads": 6, "head_dim": 192}})",
                    R"({"mamba2": {"num_heads": 48, "head_dim": 64, "state_size": 128}})"});
    add_size(list, {"nano-natsl",
                    "nano-natsl-hybrid",
                    "nano-gdn",
                    "nano-gdn-hybrid",
                    "nano-mamba2",
                    "nano-transformer",
                    {"", "", "", "", "", ""},
                    96,
                    256,
                    320,
                    3,
                    3,
                    3,
                    6,
                    {2},
                    {2},
                    4,
                    kByteVocabulary,
                    1024,
                    R"({"natsl": {"num_heads": 2, "head_dim": 36, "num_softmax_heads": 4}})",
                    R"({"natsl": {"num_heads": 2, "head_dim": 36, "num_softmax_heads": 4, "rotary": false},
                        "gated_deltanet": {"num_heads": 2, "head_dim": 36}})",
                    R"({"gated_deltanet": {"num_heads": 2, "head_dim": 36}})",
                    R"({"mamba2": {"num_heads": 8, "head_dim": 24, "state_size": 32}})"});
    add_size(list, {"tiny-natsl",
                    "tiny-natsl-hybrid",
                    "tiny-gdn",
                    "tiny-gdn-hybrid",
                    "tiny-mamba2",
                    "tiny-transformer",
                    {"", "", "", "", "", ""},
                    192,
                    512,
                    512,
                    6,
                    6,
                    7,
                    12,
                    {2, 5},
                    {2, 5},
                    6,
                    kByteVocabulary,
                    1024,
                    R"({"natsl": {"num_heads": 3, "head_dim": 48, "num_softmax_heads": 6}})",
                    R"({"natsl": {"num_heads": 3, "head_dim": 48, "num_softmax_heads": 6, "rotary": false},
                        "gated_deltanet": {"num_heads": 3, "head_dim": 48}})",
                    R"({"gated_deltanet": {"num_heads": 3, "head_dim": 48}})",
                    R"({"mamba2": {"num_heads": 12, "head_dim": 32, "state_size": 64}})"});
}

/// Lazy Attention's two sizes (Transformer++, the positions' base larger than usual), and the same for a laptop; what
/// it is compared with at the smaller one, of which the paper prints no sizes: a mixer with five maps instead of four
/// has fewer layers, or a smaller feed-forward.
void add_lazy(std::vector<Preset>& list) {
    const auto add_mixer = [&list](const char* name, std::int64_t hidden, std::int64_t feed_forward,
                                   std::int64_t layers, std::int64_t heads, const char* printed, const char* mixer,
                                   const char* options, const char* summary) {
        const bool own = *printed == 0;
        list.push_back({name, hidden, feed_forward, layers, heads, own ? kByteVocabulary : 32'000, own ? 1024 : 4096,
                        Preset::llama, printed, summary, mostly(mixer, layers, "", {}), options, 500'000.0, !own});
    };
    const auto add = [&](const char* name, std::int64_t hidden, std::int64_t feed_forward, std::int64_t layers,
                         std::int64_t heads, const char* printed, const char* options) {
        add_mixer(name, hidden, feed_forward, layers, heads, printed, "lazy", options, "Lazy Attention in every layer");
    };
    add("lazy-340m", 1024, 2816, 24, 16, "340M", R"({"lazy": {}})");
    add("lazy-760m", 1536, 4096, 24, 24, "760M", R"({"lazy": {}})");
    add("nano-lazy", 96, 320, 3, 4, "", R"({"lazy": {"window": 128}})");
    add("tiny-lazy", 192, 512, 7, 6, "", R"({"lazy": {"window": 256}})");
    // NAtS-L has the small Gated DeltaNet and Transformer.
    add_mixer("transformer-340m", 1024, 2816, 24, 16, "340M", "standard", "{}",
              "softmax attention in the manner of Llama");
    add_mixer("gdn-340m", 1024, 2816, 21, 16, "340M", "gated_deltanet",
              R"({"gated_deltanet": {"num_heads": 6, "head_dim": 128}})", "Gated DeltaNet");
    struct Baseline {
        const char *large, *nano, *mixer, *options, *summary;
        bool five_maps;
    };
    for (const Baseline& one : std::vector<Baseline>{
             {"sigmoid-340m", "nano-sigmoid", "sigmoid", "{}", "sigmoid attention", false},
             {"alibi-340m", "nano-alibi", "alibi", "{}", "softmax attention with ALiBi's slopes", false},
             {"retnet-340m", "nano-retnet", "retnet", R"({"retnet": {"expand_v": 1.0}})", "RetNet", true},
             {"ttt-340m", "nano-ttt", "ttt_linear", "{}", "TTT-Linear", true},
             {"titans-340m", "nano-titans", "titans", "{}", "Titans' memory", true}}) {
        add_mixer(one.large, 1024, 2816, one.five_maps ? 22 : 24, 16, "340M", one.mixer, one.options, one.summary);
        add_mixer(one.nano, 96, one.five_maps ? 288 : 320, 3, 4, "", one.mixer, one.options, one.summary);
    }
}

/// The thesis's stacks (Tables 3.11, 3.14, 3.15; 2.2), and the same for a laptop. Any mixer goes with them.
void add_thesis(std::vector<Preset>& list) {
    const auto add = [&list](const char* name, std::int64_t hidden, std::int64_t layers, std::int64_t heads,
                             std::int64_t vocabulary, std::int64_t positions, Preset::Manner manner,
                             const char* summary, const char* more = "{}") {
        list.push_back({name,
                        hidden,
                        4 * hidden,
                        layers,
                        heads,
                        vocabulary,
                        positions,
                        manner,
                        "",
                        summary,
                        {},
                        "{}",
                        10'000.0,
                        vocabulary > 0,
                        more});
    };
    const char* const encoder = "an encoder in the manner of BERT";
    const char* const decoder = "a decoder in the manner of GPT-2";
    const char* const both = "an encoder-decoder in the manner of Vaswani et al.";
    constexpr std::int64_t bert_words = 30'522, gpt2_words = 50'257, roberta_words = 50'265, translated = 37'000;
    add("mhe-encoder-base", 768, 12, 12, bert_words, 512, Preset::bert, encoder);
    add("mhe-encoder-large", 1024, 24, 16, bert_words, 512, Preset::bert, encoder);
    add("mhe-decoder-base", 768, 12, 12, gpt2_words, 512, Preset::gpt2, decoder);
    add("mhe-decoder-medium", 1024, 24, 16, gpt2_words, 512, Preset::gpt2, decoder);
    add("mhe-translation-base", 512, 12, 8, translated, 100, Preset::vaswani, both);
    add("mhe-translation-16h", 512, 12, 16, translated, 100, Preset::vaswani, both);
    add("mhe-translation-4h", 512, 12, 4, translated, 100, Preset::vaswani, both);
    add("mhe-translation-4l", 512, 8, 8, translated, 100, Preset::vaswani, both);
    add("mhe-translation-8l", 512, 16, 8, translated, 100, Preset::vaswani, both);
    add("mhe-translation-12h", 768, 12, 12, translated, 100, Preset::vaswani, both);
    add("mhe-translation-big", 1024, 12, 16, translated, 100, Preset::vaswani, both);
    add("nano-mhe-encoder", 64, 2, 4, kByteVocabulary, 512, Preset::bert, encoder);
    add("nano-mhe-decoder", 64, 2, 4, kByteVocabulary, 512, Preset::gpt2, decoder);
    add("nano-mhe-translation", 64, 4, 4, kByteVocabulary, 256, Preset::vaswani, both);
    add("tiny-mhe-encoder", 128, 4, 4, kByteVocabulary, 512, Preset::bert, encoder);
    add("tiny-mhe-decoder", 128, 4, 4, kByteVocabulary, 512, Preset::gpt2, decoder);
    add("tiny-mhe-translation", 128, 6, 4, kByteVocabulary, 256, Preset::vaswani, both);
    // Chapter 2's: no vocabulary but in the first, two classes.
    static std::deque<std::string> texts;  // what the presets point to
    const auto kept = [](const std::string& text) { return texts.emplace_back(text).c_str(); };
    const auto add_hashed = [&](const std::string& begin, std::int64_t hidden, std::int64_t layers, std::int64_t heads,
                                std::int64_t words, std::int64_t many, std::int64_t few, std::int64_t buckets) {
        const auto one = [&](const std::string& name, std::int64_t depth, const char* summary,
                             const std::string& embedding, std::int64_t vocabulary, const std::string& more = "") {
            const std::string keys = R"({"layer_norm_eps": 1e-5, "head": {"kind": "sequence_classes", "classes": 2})" +
                                     (embedding.empty() ? "" : R"(, "embedding": {"kind": )" + embedding + "}") + more +
                                     "}";
            add(kept(begin + name), hidden, depth, heads, vocabulary, 512, Preset::bert, summary, kept(keys));
        };
        one("hashformer-bert", layers, "what HashFormers are compared with: a table of words", "", words);
        for (const char* hash : {"md5", "lsh"}) {
            const std::string name = std::string("hashformer-") + hash;
            const std::string said = R"("hash": ")" + std::string(hash) + '"';
            const auto rows = [&](std::int64_t count) {
                return R"("emb", "rows": )" + std::to_string(count) + ", " + said;
            };
            one(name + "-emb", layers, "a row of each word's hash", rows(many), 0);
            one(name + "-emb-1k", layers, "a row of each word's hash, few of them", rows(few), 0);
            one(name + "-pool", layers, "code words of the hash's groups of bits",
                R"("pool", "bits": 128, "group_bits": 10, )" + said, 0);
            one(name + "-add", layers, "a vector for each of the hash's bits", R"("add", "bits": 128, )" + said, 0);
            one(name + "-proj", layers, "correlations of the hash's bits", R"("proj", "bits": 128, )" + said, 0);
        }
        one("proformer", 2, "a linear map of a word's bits, trained on the task alone",
            R"("linear", "bits": 420, "hash": "lsh")", 0,
            R"(, "positions": "none", "embedding_norm": false, "type_vocab_size": 0)");
        one("canine-like", layers, "eight buckets of each character",
            R"("characters", "hash_functions": 8, "buckets": )" + std::to_string(buckets), 0);
    };
    add_hashed("", 768, 12, 12, roberta_words, 50'260, 1033, 16'000);
    add_hashed("nano-", 64, 2, 4, kByteVocabulary, 4091, 1033, 1021);
    add_hashed("tiny-", 128, 4, 4, kByteVocabulary, 8179, 1033, 2039);
}

/// Settings of the thesis's variants besides sizes.
nlohmann::json manner_json(const Preset& preset) {
    nlohmann::json json{{"norm", "layer"},        {"layer_norm_eps", 1e-5},  {"norm_place", "post"},
                        {"positions", "learned"}, {"feed_forward", "plain"}, {"attention_bias", true},
                        {"output_bias", true},    {"mlp_bias", true},        {"qk_norm", false}};
    if (preset.manner == Preset::bert) {
        json.update({{"stack", "encoder"},
                     {"layer_norm_eps", 1e-12},
                     {"hidden_act", "gelu"},
                     {"embedding_norm", true},
                     {"type_vocab_size", 1},
                     {"head", {{"kind", "masked_language"}}}});
    } else if (preset.manner == Preset::gpt2) {
        json.update({{"stack", "decoder"}, {"norm_place", "pre"}, {"hidden_act", "gelu_pytorch_tanh"}});
    } else {
        json.update({{"stack", "encoder_decoder"},
                     {"num_encoder_layers", preset.layers / 2},
                     {"positions", "sinusoidal"},
                     {"hidden_act", "relu"},
                     {"attention_bias", false},
                     {"output_bias", false},
                     {"embedding_scale", std::sqrt(static_cast<double>(preset.hidden))}});
    }
    return json;
}

}  // namespace

const std::vector<Preset>& presets() {
    static const std::vector<Preset> all = [] {
        std::vector<Preset> list{
            {"deconattn-70m", 512, 2048, 6, 8, kPaperVocabulary, 2048, Preset::qwen2, "70M",
             "Deconstructing Attention, Table 10"},
            {"deconattn-160m", 768, 3072, 12, 12, kPaperVocabulary, 2048, Preset::qwen2, "160M",
             "Deconstructing Attention, Table 10"},
            {"deconattn-500m", 896, 4864, 24, 14, kPaperVocabulary, 2048, Preset::qwen2, "500M",
             "Deconstructing Attention, Table 10"},
            {"deconattn-1.7b", 2048, 6144, 28, 16, kPaperVocabulary, 2048, Preset::qwen3, "1.7B",
             "Deconstructing Attention, Table 10, in the manner of Qwen3"},
            {"nano-100k", 64, 128, 2, 4, kByteVocabulary, 1024, Preset::qwen2, "", "seconds: to try a job"},
            {"nano-400k", 96, 256, 3, 4, kByteVocabulary, 1024, Preset::qwen2, "", "a minute or two"},
            {"tiny-1m", 128, 384, 4, 4, kByteVocabulary, 1024, Preset::qwen2, "", "some minutes on two cores"},
            {"tiny-3m", 192, 512, 6, 6, kByteVocabulary, 1024, Preset::qwen2, "", "half an hour on two cores"},
            {"tiny-5m", 256, 704, 6, 8, kByteVocabulary, 1024, Preset::qwen2, "", "an hour on two cores"},
        };
        add_natsl(list);
        add_lazy(list);
        add_thesis(list);
        return list;
    }();
    return all;
}

nlohmann::json preset_json(const std::string& name) {
    std::vector<std::string> known;
    for (const Preset& preset : presets()) {
        known.emplace_back(preset.name);
        if (name != preset.name) continue;
        nlohmann::json json{{"model_type", "headscope"},
                            {"vocab_size", preset.vocabulary},
                            {"hidden_size", preset.hidden},
                            {"intermediate_size", preset.feed_forward},
                            {"num_hidden_layers", preset.layers},
                            {"num_attention_heads", preset.heads},
                            {"num_key_value_heads", preset.heads},
                            {"head_dim", preset.hidden / preset.heads},
                            {"rms_norm_eps", 1e-6},
                            {"rope_theta", preset.rope_theta},
                            {"attention_bias", preset.manner == Preset::qwen2},
                            {"qk_norm", preset.manner == Preset::qwen3},
                            {"tie_word_embeddings", preset.tied},
                            {"max_position_embeddings", preset.positions},
                            {"initializer_range", 0.02}};
        if (!preset.mixers.empty()) {
            json["layers"] = preset.mixers;
            json["mixers"] = nlohmann::json::parse(preset.options);
        }
        if (preset.manner >= Preset::bert) {
            json.erase("rope_theta");
            json.update(manner_json(preset));
        }
        json.update(nlohmann::json::parse(preset.more));
        return json;
    }
    refuse("preset", known, name);
}

const std::vector<Layout>& layouts() {
    static const std::vector<Layout> all{
        {"uniform", "none"},
        {"even", "2, 4, 6, ..."},
        {"odd", "1, 3, 5, ..."},
        {"top", "1 to n/2"},
        {"middle", "1 to n/4 and 3n/4 + 1 to n"},
        {"bottom", "n/2 + 1 to n"},
        {"quarter", "4, 8, 12, ..."},
        {"first", "1"},
        {"last", "n"},
        {"bilateral", "1 and n"},
    };
    return all;
}

std::vector<std::string> layout_mixers(const std::string& layout, const std::string& mixer, std::int64_t layers) {
    std::vector<std::string> known;
    for (const Layout& one : layouts()) known.emplace_back(one.name);
    if (std::find(known.begin(), known.end(), layout) == known.end()) refuse("layout", known, layout);
    std::vector<std::string> mixers;
    for (std::int64_t layer = 1; layer <= layers; ++layer)
        mixers.push_back(is_standard(layout, layer, layers) ? "standard" : mixer);
    return mixers;
}

std::string layout_of(const std::vector<std::string>& mixers) {
    const auto other = std::find_if(mixers.begin(), mixers.end(), [](const auto& name) { return name != "standard"; });
    const std::string mixer = other == mixers.end() ? "standard" : *other;
    for (const Layout& layout : layouts()) {
        if (layout_mixers(layout.name, mixer, static_cast<std::int64_t>(mixers.size())) == mixers) return layout.name;
    }
    return "custom";
}

}  // namespace headscope::model

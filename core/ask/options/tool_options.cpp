// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/options/tool_options.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/text/text.h"

namespace headscope::ask {
namespace {

constexpr std::size_t kNamedTools = 4;  ///< that help names
constexpr std::int64_t kMostTokens = 1 << 24;

class ToolTable {
public:
    std::vector<ToolOption> build() {
        inputs();
        metric();
        lens_and_patch();
        ablate_and_cache();
        corpus();
        knockout_and_steer();
        kinds_and_circuits();
        generate();
        return std::move(options_);
    }

private:
    using Names = std::vector<std::string>;

    ToolOption& add(const char* name, Names tools, OptionKind kind, OptionValue standard, const char* help) {
        ToolOption& option = options_.emplace_back();
        option.name = name;
        option.kind = kind;
        option.standard = std::move(standard);
        option.help = help;
        option.tools = std::move(tools);
        return option;
    }
    void text(const char* name, Names tools, const char* standard, const char* help) {
        add(name, std::move(tools), OptionKind::text, std::string(standard), help);
    }
    void texts(const char* name, Names tools, const char* help) {
        add(name, std::move(tools), OptionKind::texts, std::string(), help);
    }
    void choice(const char* name, Names tools, Names choices, const char* standard, const char* help) {
        add(name, std::move(tools), OptionKind::choice, std::string(standard), help).choices = std::move(choices);
    }
    void some_of(const char* name, Names tools, Names choices, const char* standard, const char* help) {
        add(name, std::move(tools), OptionKind::choices, std::string(standard), help).choices = std::move(choices);
    }
    void flag(const char* name, Names tools, const char* help) {
        add(name, std::move(tools), OptionKind::flag, false, help);
    }
    /// Without `standard` it has no default.
    void whole(const char* name, Names tools, std::optional<std::int64_t> standard, std::int64_t lowest,
               std::int64_t highest, const char* help) {
        ToolOption& option = add(name, std::move(tools), OptionKind::whole,
                                 standard ? OptionValue(*standard) : OptionValue(std::string()), help);
        option.lowest = static_cast<double>(lowest);
        option.highest = static_cast<double>(highest);
    }
    void number(const char* name, Names tools, double standard, double lowest, double highest, const char* help) {
        ToolOption& option = add(name, std::move(tools), OptionKind::number, standard, help);
        option.lowest = lowest;
        option.highest = highest;
    }
    void file(const char* name, Names tools, const char* help) {
        add(name, std::move(tools), OptionKind::path, std::string(), help);
    }
    void files(const char* name, Names tools, const char* help) {
        add(name, std::move(tools), OptionKind::paths, std::string(), help);
    }
    void folder(const char* name, Names tools, const char* help) {
        add(name, std::move(tools), OptionKind::path, std::string(), help).folder = true;
    }
    void output(const char* name, Names tools, const char* help) {
        add(name, std::move(tools), OptionKind::path, std::string(), help).written = true;
    }

    void inputs() {
        const Names readers{"lens",   "ablate",   "attribution", "cache", "generate",
                            "series", "knockout", "steer",       "kinds", "sinks"};
        Names with_corpus = readers;
        with_corpus.emplace_back("corpus");
        texts("text", readers, "A text; may repeat");
        files("file", readers, "A text file; - is standard input; may repeat");
        files("tokens", with_corpus, "A JSON array of arrays of ids; needs no tokenizer");
        texts("clean", {"patch"}, "a clean text; may repeat");
        texts("corrupted", {"patch"}, "the corrupted text of each, in the same order");
        files("clean-tokens", {"patch"}, "clean texts as a JSON array of arrays of ids");
        files("corrupted-tokens", {"patch"}, "corrupted texts, likewise");
        const Names with_targets{"lens",  "patch", "ablate", "attribution", "knockout", "steer",
                                 "kinds", "sinks", "series", "generate",    "cache",    "corpus"};
        texts("target-text", with_targets,
              "what the decoder of an encoder-decoder reads, for all texts or one for each");
        files("target-tokens", with_targets, "the same as a JSON array of arrays of ids, which follow the start token");
        files("corrupted-target-tokens", {"patch"}, "decoder inputs of corrupted texts, where they differ");
    }

    void metric() {
        const Names with_metric{"patch", "ablate", "knockout", "steer"};
        Names with_answer = with_metric;
        with_answer.emplace_back("attribution");
        // In the order of MetricKind.
        choice("metric", with_metric, {"logit_difference", "logit", "log_probability", "probability", "kl", "loss"}, "",
               "logit_difference, logit, log_probability, probability, kl or loss");
        text("answer", with_answer, "", "Tokens of the answer: ids, or \"strings\" of one token each");
        text("against", with_answer, "", "Tokens that the answer is compared with");
        text("position", with_answer, "-1",
             "Where the metric is read: an index, -1 the last, or all: the mean over positions");
    }

    void lens_and_patch() {
        text("target", {"lens"}, "next",
             "next (the text's next token), or tokens: ids, or \"strings\" of one token each");
        whole("top", {"lens", "generate"}, 5, 1, 1000, "likeliest tokens that are kept at each place");
        choice("kind", {"lens"}, {"logit", "tuned", "jacobian"}, "logit",  // in the order of LensKind
               "logit, tuned or jacobian");
        file("lens-file", {"lens"}, "folder of a tuned lens, or file of a Jacobian lens");
        text("sites", {"patch"}, "",
             "points, apart by commas: hidden, attention_output, feed_forward_output (layers), head_output, pattern, "
             "query, key, value (heads)");
        choice("by", {"patch"}, {"head", "position", "both", "cell"}, "head",  // in the order of SweepBy
               "sweep heads by head, position, both, or cell (each weight of a pattern)");
        choice("align", {"patch"}, {"equal", "edges"}, "equal",  // in the order of Alignment
               "equal lengths, or edges: the common beginning and end keep their positions");
        some_of("approximation", {"patch"}, {"attribution", "integrated"}, "",
                "attribution (one backward pass), integrated (gradients along the path to the clean run)");
        text("integrated-sites", {"patch"}, "", "points of --approximation integrated");
        whole("steps", {"patch"}, 16, 1, 4096, "steps of integrated gradients");
        flag("correlation", {"patch"}, "rank correlation of approximations with exact values");
    }

    void ablate_and_cache() {
        choice("how", {"ablate"}, {"zero", "mean", "reference", "resample"}, "zero",  // in the order of AblateBy
               "replace each output by zero, its mean, or the mean or the values of reference texts");
        files("reference-tokens", {"ablate"}, "texts of --how reference and resample: a JSON array of arrays of ids");
        flag("importance", {"ablate"}, "importance of heads by gradients of the loss, too");
        output("rank", {"ablate"}, "heads by the size of their change, as CSV");
        whole("context", {"cache"}, std::nullopt, 1, kMostTokens, "the first N tokens, whose keys are scored");
        some_of("scorers", {"cache"},
                {"h2o", "snapkv", "tova", "streaming_llm", "key_norm", "key_difference", "expected_attention"},
                "h2o,tova,streaming_llm,key_norm,key_difference",
                "h2o, snapkv, tova, streaming_llm, key_norm, key_difference, expected_attention, apart by commas");
        text("ratios", {"cache"}, "0.25,0.5,0.75", "shares of the keys that are removed, apart by commas");
        whole("kernel", {"cache"}, 5, 1, kMostTokens, "snapkv averages scores over N keys, an odd number");
        whole("sink", {"cache"}, 4, 0, kMostTokens, "first keys that streaming_llm and expected_attention keep");
        whole("future", {"cache"}, 512, 1, 1 << 16, "later positions that expected_attention averages over");
        number("epsilon", {"sinks"}, 0.3, 0, 1, "mean weight above which a key is a sink");
    }

    void corpus() {
        folder("folder", {"corpus"}, "a folder with .txt and .jsonl files");
        file("json-lines", {"corpus"}, "a file with a JSON object a line, in place of a folder");
        text("field", {"corpus"}, "text", "the text of a JSON object; dots lead into objects: translation.en");
        text("target-field", {"corpus"}, "",
             "the decoder's text of a JSON object, for an encoder-decoder: translation.de");
        whole("intervals", {"corpus"}, 5, 2, 20, "intervals of the largest weight that texts are kept of");
        flag("two-passes", {"corpus"}, "texts that set the intervals are read again and may be kept, too");
        ToolOption& tree = add("headvis-tree", {"corpus"}, OptionKind::path, std::string(),
                               "a new folder for HeadVis's page: its data tree");
        tree.folder = tree.written = true;
    }

    void knockout_and_steer() {
        text("queries", {"knockout"}, "", "positions that lose attention: 8-11,-1");
        text("keys", {"knockout"}, "", "positions that they no longer see: 2-4");
        text("heads", {"knockout", "circuits"}, "",
             "heads as layer.head, like 3.1,4.cross.2 (default: all); circuits: of --pairs");
        choice("attention", {"knockout"}, {"all", "encoder", "decoder", "cross"}, "all",  // in the order of KnockoutIn
               "attentions of an encoder-decoder that lose edges: all, encoder, decoder or cross");
        whole("window", {"knockout", "cache"}, std::nullopt, 1, 1 << 16,
              "knockout: forbid in N layers around each layer in turn, too; cache: last queries of snapkv (64)");
        texts("positive", {"steer"}, "a text that the vector points to; may repeat");
        texts("negative", {"steer"}, "a text that it points away from; may repeat");
        files("positive-tokens", {"steer"}, "texts that it points to as a JSON array of arrays of ids");
        files("negative-tokens", {"steer"}, "texts that it points away from, likewise");
        choice("at", {"steer"}, {"last", "mean"}, "last",  // in the order of SteerAt
               "the texts' last token, or the mean of their positions");
        text("factors", {"steer"}, "-2,-1,1,2", "factors of the vector, apart by commas");
        text("layers", {"steer"}, "", "layers, like 0,2,5-8 (default: all)");
        file("vector", {"steer"}, "llama.cpp's control vector, in place of two sets of texts");
        output("save-vector", {"steer"}, "write the vectors as llama.cpp's control vector, OUT.gguf");
    }

    void kinds_and_circuits() {
        whole("drawn", {"kinds"}, std::nullopt, 0, 1 << 16,
              "N texts of random tokens, each twice (default: 4 without a text)");
        whole("half", {"kinds"}, 32, 1, 1 << 20, "random tokens of a drawn text");
        flag("exclude-first", {"kinds"}, "leave attention to the first token out");
        flag("exclude-current", {"kinds"}, "leave attention to itself out");
        text("needle", {"kinds"}, "", "positions of the first text whose copies count: 20-31");
        choice("norm", {"circuits"}, {"raw", "fold"}, "raw",
               "weights as they are, or fold: with the gains of the norms ahead");
        whole("pairs", {"circuits"}, 0, 0, 1000, "largest token pairs of each product (--heads: of these heads)");
    }

    void generate() {
        whole("generate", {"generate", "kinds"}, std::nullopt, 1, 1 << 20,
              "tokens that the model appends (generate: 20; kinds: to the text with --needle)");
        number("temperature", {"generate"}, 0, 0, 1e3, "0 takes the likeliest token");
        whole("seed", {"generate", "kinds", "corpus"}, 0, 0, std::int64_t{1} << 53U,
              "generate: of draws, text s has seed + s; kinds: of --drawn; corpus: of the texts that are kept");
        texts("replace", {"generate"}, "STEP=TOKEN,.. in place of the chosen tokens");
        choice("record", {"generate"}, {"maps"}, "", "maps keeps the weights of each row, too");
    }

    std::vector<ToolOption> options_;
};

}  // namespace

std::span<const ToolOption> tool_options() {
    static const std::vector<ToolOption> options = ToolTable().build();
    return options;
}

const ToolOption& tool_option(const std::string& name) {
    const std::string plain = name.starts_with("--") ? name.substr(2) : name;
    for (const ToolOption& option : tool_options())
        if (option.name == plain) return option;
    throw Error(ErrorCode::internal, name, "expected it in core/ask/options/tool_options.cpp", "found it missing");
}

const std::vector<std::string>& common_options() {
    static const std::vector<std::string> names{"tool",     "model",     "--output", "--csv",     "--resume",
                                                "--bos",    "--length",  "--dtype",  "--weights", "--interventions",
                                                "--device", "--threads", "--kernels"};
    return names;
}

bool reads_option(const std::string& tool, const ToolOption& option) {
    return std::find(option.tools.begin(), option.tools.end(), tool) != option.tools.end();
}

std::vector<std::string> options_of_tool(const std::string& tool) {
    std::vector<std::string> names;
    for (const ToolOption& option : tool_options())
        if (reads_option(tool, option)) names.push_back("--" + option.name);
    return names;
}

std::string command_help(const ToolOption& option) {
    return option.tools.size() > kNamedTools ? option.help : joined_text(option.tools, ", ") + ": " + option.help;
}

std::string standard_text(const ToolOption& option) {
    if (const auto* text = std::get_if<std::string>(&option.standard)) return *text;
    return option.kind == OptionKind::flag ? std::string() : plain_number(number_of(option.standard));
}

}  // namespace headscope::ask

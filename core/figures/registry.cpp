// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/figures/options/figure_options.h"
#include "core/figures/recipe.h"

namespace headscope::figures {
namespace {

struct Entry {
    const char* name;
    const char* description;
    const char* needs;
    /// Of analyses; null: it is not of these.
    FigureData (*make)(Files, const FigureOptions&);
    /// Of other kinds of input, and those kinds.
    FigureData (*make_other)(const FigureInputs&, const FigureOptions&) = nullptr;
    unsigned kinds = 0;
};

constexpr unsigned kRuns = 1, kEvaluations = 2, kModels = 4, kTensors = 8, kHashes = 16;

// One line a recipe. A name here is what the command line's --figure takes.
constexpr std::array kRecipes{
    Entry{"radar", "one polar plot per layer of the paper's indicators; models in columns", "indicators", radar},
    Entry{"scores",
          "distribution of the scores per layer, or per head of --layer, and of the weights; models side by side",
          "score histograms; --stage after: maps (analyze --record maps)", scores},
    Entry{
        "attention",
        "attention map of one head, of the mean of a layer's, or of all heads of --layer; several models and texts in "
        "a grid, each with its own layer and head",
        "maps (analyze --record maps)", attention},
    Entry{"indicators", "heat map layers x heads of --indicator, or of every indicator", "indicators", indicators},
    Entry{"lines", "tokens left and right with weighted lines between them, of one head, several, or a layer's mean",
          "maps (analyze --record maps)", lines},
    Entry{"text",
          "the text, colored by the weights of --query or to --key, by the weight that tokens receive, or by loss",
          "column mass or loss; --query: maps (analyze --record maps)", text},
    Entry{"states", "norms and variances of queries, keys, values and hidden states by position",
          "states (analyze --record states)", states},
    Entry{"experts",
          "load of a mixture's experts by layer, with an even load marked; --layer: shares of tokens and of weight",
          "experts (analyze --record experts)", experts},
    Entry{"branch-weights",
          "weights of NAtS-L's softmax and linear branches for each token, by layer, or by head of --layer",
          "weights of branches (analyze --record branch-weights)", branch_weights},
    Entry{"token-types",
          "softmax fraction of NAtS-L's layers and heads, texts side by side; --layer: the type of every chunk; with "
          "--head: the text coloured by type",
          "a model with NAtS-L layers", token_types},
    Entry{"bias",
          "what is added to a score by distance: Lazy Attention's learned biases, ALiBi's slopes, T5's buckets; a "
          "curve a "
          "head, a panel a layer",
          "a model whose scores have a bias by distance", bias},
    Entry{"offsets", "offsets of Elastic-Softmax: a violin a layer with its mean, and a heat map layers x heads",
          "a model with an elastic normaliser", offsets},
    Entry{"head-embeddings",
          "embeddings by which the heads of multiple-head-embedding attention differ: norms, pairwise cosines, and "
          "beside them how far the heads' weights differ; --layer: the cosines of one layer",
          "a model with mhe_add or mhe_mul layers", head_embeddings},
    Entry{"mass",
          "how a row's weight is divided, a stacked bar per head: first key, other keys, learned sink, released; the "
          "share of exact zeros; a table of loss, density and sink",
          "indicators", mass},
    Entry{
        "loss",
        "of analyses: next-token loss by position, its running mean, the most surprising tokens; of runs: training and "
        "validation loss, raw and smoothed, several runs overlaid",
        "loss; or runs", loss, run_loss, kRuns},
    Entry{"difference",
          "difference of two analyses (the second minus the first, the baseline), or of two sequences, layers or heads "
          "of "
          "one: indicators, or the maps of --layer and --head, cells paired by their tokens",
          "indicators: models alike; maps: analyze --record maps", difference},
    Entry{
        "hash",
        "bits of a text's words, or of those of --words, and how alike they are, with n-grams and code words; MD5 and "
        "LSH side by side",
        "a model with a hash embedding; --words: md5, lsh or checkpoints with one", hash, hash_words, kHashes},
    Entry{"thumbnails", "small attention maps of every head of every layer", "thumbnails", thumbnails},
    Entry{"timeline",
          "indicators of each layer while a model learned; --step: radar and thumbnails of the layers at that step",
          "runs with a probe", nullptr, timeline, kRuns},
    Entry{"context-perplexity", "perplexity, or another metric, against the length of the context",
          "evaluations at several lengths", nullptr, context_perplexity, kEvaluations},
    Entry{"position-perplexity", "perplexity by position in a long text, several models",
          "evaluations with position_perplexity", nullptr, position_perplexity, kEvaluations},
    Entry{"ruler", "RULER's retrieval tasks: a panel per task, the share of right answers against the length",
          "evaluations of RULER's tasks", nullptr, ruler, kEvaluations},
    Entry{"tasks",
          "lm-eval's tasks: a panel per task, a dot per model with its error, the level of guessing, the best marked",
          "evaluations of lm-eval's tasks", nullptr, tasks, kEvaluations},
    Entry{"latency", "time of prefill and of one decoded token, against the length", "results of cost --latency",
          nullptr, latency, kEvaluations},
    Entry{"ablation", "a metric by layout, with a line at Standard's value", "evaluations of several layouts", nullptr,
          ablation, kEvaluations},
    Entry{"scaling", "a metric against the number of parameters, dots by size", "evaluations of several sizes", nullptr,
          scaling, kEvaluations},
    Entry{"retention",
          "results relative to --baseline's, against the parameters; a table with elasticity and compression",
          "evaluations, and --baseline NAME", nullptr, retention, kEvaluations},
    Entry{"cost",
          "operations and bytes of mixers against length by the papers' formulas, with a table and measured values",
          "a model's configuration: a checkpoint, an analysis or a run", nullptr, cost, kModels},
    Entry{"tensors", "histograms of the values of a checkpoint's tensors, with their statistics",
          "checkpoints, and --tensor NAME", nullptr, tensors, kTensors},
};

}  // namespace

std::vector<RecipeInfo> recipes() {
    std::vector<RecipeInfo> all;
    for (const auto& entry : kRecipes) {
        all.push_back({entry.name, entry.description, entry.needs, entry.make != nullptr, (entry.kinds & kRuns) != 0,
                       (entry.kinds & kEvaluations) != 0, (entry.kinds & kModels) != 0, (entry.kinds & kTensors) != 0,
                       (entry.kinds & kHashes) != 0});
    }
    return all;
}

namespace {

const Entry& entry_of(const std::string& given) {
    const std::string recipe = current_recipe(given);
    const auto* entry = std::find_if(kRecipes.begin(), kRecipes.end(), [&](const auto& e) { return recipe == e.name; });
    if (entry != kRecipes.end()) return *entry;
    std::string known;
    for (const auto& e : kRecipes) known += (known.empty() ? "" : ", ") + std::string(e.name);
    throw Error(ErrorCode::usage, "--figure", "expected one of " + known, "found " + escaped(recipe));
}

/// Lists and means of heads are not for every figure.
void check_lists(const std::string& recipe, const FigureOptions& options) {
    const auto refuse = [](const char* option, const std::string& expected, const std::string& found) {
        throw Error(ErrorCode::usage, option, "expected " + expected, "found " + found);
    };
    const bool maps = recipe == "attention";
    if (options.head && !options.heads.empty()) refuse("--heads", "either --head or --heads", "both");
    if (!options.heads.empty() && recipe != "lines" && !maps) {
        refuse("--head", "one head; several are for the figure lines, and for attention of several files",
               std::to_string(options.heads.size()));
    }
    if (!options.layers.empty() && !maps) {
        refuse("--layer", "one layer; several are for the figure attention of several files",
               std::to_string(options.layers.size()));
    }
    const bool mean = options.head == kMeanOfHeads ||
                      std::find(options.heads.begin(), options.heads.end(), kMeanOfHeads) != options.heads.end();
    if (mean && !maps)
        refuse("--head", "a number, counted from 0; the mean of heads is for the figure attention", "mean");
}

FigureData make_of_analyses(const Entry& entry, Files files, const FigureOptions& options) {
    const std::string recipe = entry.name;
    check_lists(recipe, options);
    FigureData figure = entry.make(files, options);
    figure.recipe = recipe;
    return figure;
}

struct Kind {
    const char* name;
    bool found, wanted;
};

}  // namespace

FigureData make_figure(const std::string& recipe, const FigureInputs& inputs, const FigureOptions& options) {
    const Entry& entry = entry_of(recipe);
    const std::array<Kind, 6> kinds{
        {{"analysis files", !inputs.analyses.empty(), entry.make != nullptr},
         {"runs", !inputs.runs.empty(), (entry.kinds & kRuns) != 0},
         {"evaluation files", !inputs.evaluations.empty(), (entry.kinds & kEvaluations) != 0},
         {"models", !inputs.models.empty(), (entry.kinds & kModels) != 0},
         {"checkpoints", !inputs.tensors.empty(), (entry.kinds & kTensors) != 0},
         {"hashes of words", !inputs.hashes.empty(), (entry.kinds & kHashes) != 0}}};
    std::string wanted, found;
    int known = 0, unknown = 0;
    for (const Kind& kind : kinds) {
        if (kind.wanted) wanted += (wanted.empty() ? "" : " or ") + std::string(kind.name);
        if (!kind.found) continue;
        found += (found.empty() ? "" : " and ") + std::string(kind.name);
        (kind.wanted ? known : unknown) += 1;
    }
    if (known != 1 || unknown > 0) {
        throw Error(ErrorCode::usage, "figure " + recipe, "expected " + wanted + ", of one kind",
                    "found " + (found.empty() ? "none" : found));
    }
    if (!inputs.analyses.empty()) return make_of_analyses(entry, inputs.analyses, options);
    check_lists(recipe, options);
    FigureData figure = entry.make_other(inputs, options);
    figure.recipe = recipe;
    return figure;
}

FigureData make_figure(const std::string& recipe, Files files, const FigureOptions& options) {
    const Entry& entry = entry_of(recipe);
    if (files.empty())
        throw Error(ErrorCode::usage, "figure " + recipe, "expected at least one analysis file", "found none");
    if (entry.make == nullptr)
        throw Error(ErrorCode::usage, "figure " + recipe, std::string("expected ") + entry.needs,
                    "found analysis files");
    return make_of_analyses(entry, files, options);
}

std::string figure_csv(const FigureData& figure) {
    if (!figure.table)
        throw Error(ErrorCode::internal, "figure " + figure.recipe, "expected a table of its numbers", "found none");
    return csv(figure.table());
}

}  // namespace headscope::figures

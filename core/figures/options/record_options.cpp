// SPDX-License-Identifier: GPL-3.0-or-later
// Options of figures of runs, evaluations, models, tensors and hashes.
#include <algorithm>

#include "core/base/text/text.h"
#include "core/figures/benchmark/benchmark_sets.h"
#include "core/figures/options/option_kinds.h"
#include "core/figures/task_averages.h"

namespace headscope::figures {
namespace {

FigureOption mixers_option() {
    FigureOption option{"mixers",
                        "LIST",
                        "Mixers, separated by commas, or all (default: those of Deconstructing Attention and of the "
                        "given models)",
                        {},
                        false,
                        {},
                        {}};
    option.set = [](FigureRequest& request, const OptionValues& values) {
        std::vector<std::string>& mixers = request.options.mixers;
        mixers.clear();
        const std::string& list = values.back();
        for (std::size_t begin = 0; begin <= list.size();) {
            const std::size_t end = std::min(list.find(',', begin), list.size());
            if (end == begin) refuse_value("mixers", "names separated by commas", list);
            mixers.push_back(list.substr(begin, end - begin));
            begin = end + 1;
        }
    };
    option.get = [](const FigureRequest& request) -> OptionValues {
        const auto& mixers = request.options.mixers;
        return mixers.empty() ? OptionValues{} : OptionValues{joined_text(mixers, ",")};
    };
    return option;
}

FigureOption tensor_option() {
    FigureOption option{"tensor", "NAME", "Name or pattern of tensors, as '*.q_proj.weight'; may repeat", {}, true,
                        {},       {}};
    option.set = [](FigureRequest& request, const OptionValues& values) {
        for (const auto& name : values) {
            if (name.empty()) refuse_value("tensor", "a name", "none");
            request.options.tensors.push_back(name);
        }
    };
    option.get = [](const FigureRequest& request) -> OptionValues { return request.options.tensors; };
    return option;
}

}  // namespace

void add_record_options(std::vector<FigureOption>& all) {
    all.push_back(
        optional_count("step", "Adds radar and thumbnails of the last probe up to this step", &FigureOptions::step));
    all.push_back(optional_count("smooth",
                                 "Length of the running mean, in steps of a run or buckets of positions (1: none)",
                                 &FigureOptions::smooth));
    all.push_back(word_option("site", "ask patch: the point (default: all that the file has)", &FigureOptions::site));
    all.push_back(
        choice<std::string>("show", "Logit lens: colors",
                            {{"probability", "probability"}, {"rank", "rank"}, {"kl", "kl"}, {"token", "token"}},
                            [](FigureRequest& r) -> std::string& { return r.options.show; }));
    all.push_back(word_option("x", "ask corpus: measure of heads on the horizontal axis (default: qk_distance)",
                              &FigureOptions::x));
    all.push_back(word_option("y", "ask corpus: measure of heads on the vertical axis (default: induction_score)",
                              &FigureOptions::y));
    all.push_back(choice<std::string>("matrix", "Circuits: products of heads, or composition of two through Q, K or V",
                                      {{"ov", "ov"},
                                       {"qk", "qk"},
                                       {"composition_q", "composition_q"},
                                       {"composition_k", "composition_k"},
                                       {"composition_v", "composition_v"}},
                                      [](FigureRequest& r) -> std::string& { return r.options.matrix; }));
    all.push_back(flag_option("normalize", "ask patch: shares of the clean run's effect", &FigureOptions::normalized));
    all.push_back(flag_option("log-loss", "Runs: logarithmic axes", &FigureOptions::log_loss));
    all.push_back(flag_option("perplexity", "Runs: draw perplexity, exp of the loss", &FigureOptions::perplexity));
    all.push_back(real_option("from", "Runs: start of the axis, in steps, tokens or seconds", &FigureOptions::from_x));
    all.push_back(real_option("to", "Runs: end of the axis, in steps, tokens or seconds", &FigureOptions::to_x));
    all.push_back(choice<Against>("against", "Runs: axis of the curves",
                                  {{"step", Against::step}, {"tokens", Against::tokens}, {"time", Against::time}},
                                  [](FigureRequest& r) -> Against& { return r.options.against; }));
    all.push_back(word_option("task", "Task of the evaluations (default: all)", &FigureOptions::task));
    all.push_back(
        word_option("metric",
                    "Metric of the evaluations (default: the first; tasks: the one that papers print; with acc or "
                    "acc_norm only tasks that have it are drawn)",
                    &FigureOptions::metric));
    all.push_back(word_option("significance",
                              "Model that is marked * where it differs from the best of the others: Welch's t over "
                              "seeds, else the paired t over items, p < 0.05",
                              &FigureOptions::significance));
    NamedValues<std::string> averages;
    for (const TaskAverage& one : task_averages()) averages.emplace_back(one.name, one.name);
    averages.emplace_back(kAverageOfAll, kAverageOfAll);
    all.push_back(choice<std::string>(
        "average",
        "A paper's average, or all for that of all accuracies (default: the paper's whose tasks these are, else all)",
        averages, [](FigureRequest& r) -> std::string& { return r.options.average; }));
    all.push_back(optional_count("length", "Tokens of context of an evaluation, or of the table of costs",
                                 &FigureOptions::length));
    all.push_back(tensor_option());
    all.push_back(word_option("words", "Text whose words are hashed by md5, lsh or a model's hash embedding",
                              &FigureOptions::words));
    all.back().value = "TEXT";
    all.push_back(flag_option("measure", "Also measure on this machine, which takes minutes", &FigureOptions::measure));
    all.push_back(choice<CostOf>(
        "of",
        "Cost of mixers by length, or parameters of variants of multi-head attention: of a sublayer by its "
        "number of heads, or of whole stacks",
        {{"mixers", CostOf::mixers}, {"sublayer", CostOf::sublayer}, {"stacks", CostOf::stacks}},
        [](FigureRequest& r) -> CostOf& { return r.options.cost_of; }));
    all.push_back(mixers_option());
    all.push_back(optional_count("batch", "Sequences of a batch (default: 1)", &FigureOptions::batch, 1));
    all.push_back(optional_count("tensor-parallel", "Machines that share the activations of a layer (default: 1)",
                                 &FigureOptions::tensor_parallel, 1));
    all.push_back(optional_count("bytes", "Bytes of a number in the formulas (default: 2)", &FigureOptions::bytes, 1));
    NamedValues<std::string> sets;
    for (const BenchmarkSet& one : benchmark_sets()) sets.emplace_back(one.name, one.name);
    all.push_back(choice<std::string>("set", "Tasks of the table of benchmarks", sets,
                                      [](FigureRequest& r) -> std::string& { return r.options.set; }));
    all.push_back(word_option("baseline", "Model to compare scores and sizes with", &FigureOptions::baseline));
    all.push_back(
        word_option("smallest", "Smallest model, from which elasticity is computed, as SHA", &FigureOptions::smallest));
}

}  // namespace headscope::figures

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/evaluation_groups.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/cost/mixer_cost.h"
#include "core/figures/recipe.h"
#include "core/mixers/types/type.h"

namespace headscope::figures {
namespace {

constexpr std::array<const char*, 11> kLayouts{"uniform", "even",  "odd",  "top",       "middle", "bottom",
                                               "quarter", "first", "last", "bilateral", "custom"};
/// A figure's numbers stand in many columns; a file of millions of rows is no evaluation of ours.
constexpr std::size_t kMostResults = 1'000'000;
/// Limits on tasks with their metrics, lengths, models, and panels.
constexpr std::size_t kMostMeasured = 200, kMostLengths = 1000, kMostGroups = 2000, kMostPanels = 400;
/// Each position of a long text may be a length.
constexpr std::size_t kMostPositions = 200'000;
constexpr const char* kPositions = "position-perplexity";
constexpr const char* kChance = "chance";
constexpr const char* kMajority = "majority";
constexpr std::string_view kChanceOf = "chance_";  ///< before a metric that is no accuracy
/// Metrics of lm-eval's tasks.
constexpr std::array<const char*, 8> kTaskMetrics{"acc",        "acc_norm",        kChanceAdjusted,   "contains",
                                                  "perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte"};

bool is_baseline(const std::string& metric) {
    return metric == kChance || metric == kMajority || metric.starts_with(kChanceOf);
}

std::string wanted_results(const std::string& recipe) {
    if (recipe == kPositions) return "results of evaluate --task position_perplexity";
    if (recipe == "latency") return "results of cost --latency";
    if (recipe == "ruler") return "results of evaluate --task ruler_retrieval, or another of RULER's tasks,";
    if (recipe == "longbench") return "results of evaluate --task longbench_e, or another of LongBench's tasks,";
    if (recipe == "tasks") return "results of evaluate --task zero_shot, or another of lm-eval's tasks,";
    return "results";
}

void check_most(const char* what, std::size_t count, std::size_t most) {
    if (count <= most) return;
    throw Error(ErrorCode::limit, "evaluations", "expected at most " + std::to_string(most) + " " + what, "found more");
}

std::size_t mixer_rank(const std::string& mixer) {
    const auto& known = cost::mixer_costs();
    const auto it = std::find_if(known.begin(), known.end(), [&](const auto& cost) { return cost.mixer == mixer; });
    return static_cast<std::size_t>(it - known.begin());
}

std::string group_label(const store::EvaluatedModel& model) {
    const std::string layout = mixers::is_standard(model.mixer) ? "" : " " + model.layout;
    return mixers::column_title_of(model.mixer) + layout + (model.skipped.empty() ? "" : ", skipped");
}

/// Common properties of models of one group: everything but the seed. Models without a known seed, or with a seed that
/// stands for several weights (`apart`), need equal weights, too.
auto key_of(const store::EvaluatedModel& model, bool apart = false) {
    const std::string weights = model.seed >= 0 && !apart ? "" : model.sha256.empty() ? model.name : model.sha256;
    return std::tuple(mixers::is_standard(model.mixer) ? std::size_t{0} : mixer_rank(model.mixer) + 1, model.mixer,
                      layout_rank(model.layout), model.layer_mixers, model.skipped, model.parameters,
                      model.training_length, model.job, weights);
}
using GroupKey = decltype(key_of({}));

/// Names of texts in figures: two texts of one name differ by the begin of their digests. Without a digest, the name
/// alone identifies the text.
class TextNames {
public:
    explicit TextNames(Evaluations evaluations) {
        for (const auto& evaluation : evaluations)
            for (const auto& result : evaluation->results)
                if (!result.data_sha256.empty()) digests_[{result.task, result.text}].insert(result.data_sha256);
    }
    std::string name(const store::EvaluationResult& result) const {
        const auto known = digests_.find({result.task, result.text});
        if (known == digests_.end() || known->second.size() < 2 || result.data_sha256.empty()) return result.text;
        return result.text + (result.text.empty() ? "" : " ") + result.data_sha256.substr(0, 7);
    }

private:
    std::map<std::pair<std::string, std::string>, std::set<std::string>> digests_;
};

/// Adds a model's value. The same weights again are no other seed: the value over more tokens or items stays.
void add_value(EvaluationValue& value, const store::EvaluatedModel& model, const store::EvaluationResult& result) {
    const auto known = model.sha256.empty() ? value.weights.end()
                                            : std::find(value.weights.begin(), value.weights.end(), model.sha256);
    const auto at = static_cast<std::size_t>(known - value.weights.begin());
    if (known == value.weights.end()) {
        value.each.push_back(result.value);
        value.weights.push_back(model.sha256);
        value.counts.push_back(result.count);
    } else if (result.count < value.counts[at]) {
        return;
    }
    value.each[at] = result.value;
    value.counts[at] = result.count;
    value.error = result.error;
}

/// Groups in which a seed comes with several weights: no job records how else they differ.
std::set<GroupKey> mixed_groups(Evaluations evaluations) {
    std::map<std::pair<GroupKey, std::int64_t>, std::string> weights;
    std::set<GroupKey> mixed;
    for (const auto& evaluation : evaluations) {
        for (const auto& model : evaluation->models) {
            if (model.sha256.empty()) continue;
            const auto key = key_of(model);
            const auto known = weights.emplace(std::pair(key, model.seed), model.sha256).first;
            if (known->second != model.sha256) mixed.insert(key);
        }
    }
    return mixed;
}

/// The given name of each group, in that order; empty ones: none. Throws Error (usage) for another number of names.
std::vector<std::string> names_of(const std::map<GroupKey, EvaluationGroup>& groups,
                                  const std::map<GroupKey, std::size_t>& order, const std::vector<std::string>& names) {
    if (names.size() == groups.size()) return names;
    std::vector<std::string> models(groups.size());
    if (names.empty() || groups.empty()) return models;
    for (const auto& [key, group] : groups) models[order.at(key)] = group.model;
    throw Error(ErrorCode::usage, "--names", "expected a name for each model: " + list_text(models, 20),
                "found " + std::to_string(names.size()));
}

}  // namespace

bool draws(const std::string& recipe, const store::EvaluationResult& result) {
    const std::string& task = result.task;
    const bool positions = task == "position_perplexity", latency = task == "prefill" || task == "decode";
    if (recipe == kPositions) return positions;
    if (recipe == "latency") return latency;
    if (recipe == "ruler") return result.metric == "score" && (task.starts_with("niah_") || task.starts_with("ruler_"));
    if (recipe == "longbench") return result.metric == "score" && task.starts_with("longbench_");
    if (is_baseline(result.metric)) return recipe == "tasks";
    if (recipe == "tasks") {
        // Texts of the user's own have metrics of the same names.
        return task != "perplexity" &&
               std::find(kTaskMetrics.begin(), kTaskMetrics.end(), result.metric) != kTaskMetrics.end();
    }
    return !positions && !latency;
}

void check_panels(std::size_t count) {
    check_most("panels: choose a task", count, kMostPanels);
}

std::size_t layout_rank(const std::string& layout) {
    return static_cast<std::size_t>(std::find(kLayouts.begin(), kLayouts.end(), layout) - kLayouts.begin());
}

bool lower_is_better(const std::string& metric) {
    return metric == "loss" || metric.find("perplexity") != std::string::npos || metric == "bits_per_byte" ||
           metric.ends_with("_ms");
}

std::string spaced(std::string name) {
    std::replace(name.begin(), name.end(), '_', ' ');
    return name;
}

std::string shots_text(std::int64_t shots) {
    return std::to_string(shots) + (shots == 1 ? " shot" : " shots");
}

bool is_accuracy(const std::string& metric) {
    return metric == "acc" || metric == "acc_norm";
}

std::size_t named_group(const std::vector<EvaluationGroup>& groups, const char* option, const std::string& name) {
    const std::vector<std::string> names = group_names(groups);
    for (std::size_t i = 0; i < groups.size(); ++i)
        if (names[i] == name || groups[i].model == name) return i;
    throw Error(ErrorCode::usage, option, "expected a model of these files: " + list_text(names, 20),
                "found " + (name.empty() ? "none" : escaped(name)));
}

std::vector<std::string> group_names(const std::vector<EvaluationGroup>& groups) {
    std::map<std::string, int> known;
    bool custom = false;
    for (const auto& group : groups) {
        ++known[group.label];
        custom = custom || (group.given.empty() && group.label.ends_with(" custom"));
    }
    std::vector<std::string> names;
    for (const auto& group : groups) names.push_back(custom || known[group.label] > 1 ? group.model : group.label);
    // Models of one name are numbered.
    std::map<std::string, int> same, number;
    for (const auto& name : names) ++same[name];
    for (auto& name : names)
        if (same[name] > 1) name += " #" + std::to_string(++number[name]);
    for (std::size_t g = 0; g < groups.size(); ++g)
        if (!groups[g].given.empty()) names[g] = groups[g].given;
    return names;
}

bool EvaluationGroups::several_texts(const std::string& task) const {
    std::set<std::string> texts;
    for (const Measured& what : all_)
        if (what.task == task) texts.insert(what.text);
    return texts.size() > 1;
}

std::string EvaluationGroups::text_words(const Measured& what) const {
    std::string words;
    if (several_texts(what.task)) words += ", " + (what.text.empty() ? "an unnamed text" : escaped(what.text));
    if (!what.subset.empty()) words += ", " + escaped(what.subset);
    return words;
}

std::string EvaluationGroups::title(const Measured& what) const {
    const std::string task = spaced(what.task), metric = spaced(what.metric);
    const std::string both = task == "perplexity" ? metric : task.ends_with(metric) ? task : task + ", " + metric;
    return both + (what.shots == 0 ? "" : ", " + shots_text(what.shots)) + text_words(what);
}

const EvaluationValue* EvaluationGroup::find(const Measured& what, std::int64_t length) const {
    const auto measured = values.find(what);
    if (measured == values.end()) return nullptr;
    const auto at = measured->second.find(length);
    return at == measured->second.end() ? nullptr : &at->second;
}

EvaluationGroups::EvaluationGroups(Evaluations evaluations, const std::string& recipe,
                                   const std::vector<std::string>& names) {
    std::size_t results = 0;
    for (const auto& evaluation : evaluations) results += evaluation->results.size();
    if (results > kMostResults) {
        throw Error(ErrorCode::limit, "evaluations", "expected at most " + std::to_string(kMostResults) + " results",
                    "found " + std::to_string(results));
    }
    const std::set<GroupKey> mixed = mixed_groups(evaluations);
    const TextNames texts(evaluations);
    std::map<GroupKey, EvaluationGroup> groups;
    std::map<GroupKey, std::size_t> order;  // as the files have them
    for (const auto& evaluation : evaluations) {
        for (const auto& result : evaluation->results) {
            if (!std::isfinite(result.value) || !draws(recipe, result)) continue;
            if (is_baseline(result.metric)) {
                const bool of_metric = result.metric.starts_with(kChanceOf);
                const std::string metric = of_metric ? result.metric.substr(kChanceOf.size()) : "";
                Baselines& known = baselines_[{result.task, metric, result.shots, texts.name(result), result.subset}];
                (result.metric == kMajority ? known.majority : known.chance) = result.value;
                continue;
            }
            const auto& model = evaluation->models[static_cast<std::size_t>(result.model)];
            const auto key = key_of(model, mixed.contains(key_of(model)));
            order.emplace(key, order.size());
            EvaluationGroup& group = groups[key];
            check_most("models in a figure", groups.size(), kMostGroups);
            group.mixer = model.mixer;
            group.layout = model.layout;
            group.skipped = !model.skipped.empty();
            group.parameters = model.parameters;
            group.layers = model.layers;
            group.attention_parameters = model.attention_parameters;
            group.embedding_parameters = model.embedding_parameters;
            group.training_length = model.training_length;
            if (group.model.empty()) group.model = model.name;
            group.label = group_label(model);
            const EvaluationMember member{evaluation, result.model};
            if (std::find(group.members.begin(), group.members.end(), member) == group.members.end())
                group.members.push_back(member);
            const Measured what{result.task, result.metric, result.shots, texts.name(result), result.subset};
            if (std::find(all_.begin(), all_.end(), what) == all_.end()) all_.push_back(what);
            check_most("tasks with their metrics", all_.size(), kMostMeasured);
            add_value(group.values[what][result.length], model, result);
        }
    }
    const std::vector<std::string> given = names_of(groups, order, names);
    for (auto& [key, group] : groups) {
        group.given = given[order.at(key)];
        if (!group.given.empty()) group.label = group.given;
        for (auto& [what, by_length] : group.values) {
            for (auto& [length, value] : by_length) {
                const Moments over = moments(value.each);
                value.mean = over.mean;
                if (value.each.size() > 1) value.error = over.deviation;
                most_seeds_ = std::max(most_seeds_, value.each.size());
                some_have_one_ |= value.each.size() == 1;
            }
        }
        groups_.push_back(std::move(group));
    }
    for (const Measured& what : all_)
        check_most("lengths of a task", lengths(what).size(), recipe == kPositions ? kMostPositions : kMostLengths);
    if (groups_.empty())
        throw Error(ErrorCode::usage, "evaluations", "expected " + wanted_results(recipe) + " in these files",
                    "found none");
}

std::vector<Measured> EvaluationGroups::chosen(const FigureOptions& options) const {
    std::vector<Measured> some;
    for (const Measured& what : all_) {
        if (!options.task.empty() && what.task != options.task) continue;
        if (!options.metric.empty() && what.metric != options.metric) continue;
        const bool again = std::any_of(some.begin(), some.end(), [&](const Measured& m) {
            return m.task == what.task && m.shots == what.shots && m.text == what.text && m.subset == what.subset;
        });
        if (!again) some.push_back(what);
    }
    if (!some.empty()) return some;
    std::vector<std::string> known;
    for (const Measured& what : all_)
        if (const std::string name = what.task + " " + what.metric;
            std::find(known.begin(), known.end(), name) == known.end())
            known.push_back(name);
    throw Error(ErrorCode::usage, options.task.empty() ? "--metric" : "--task",
                "expected a task and metric of these files: " + list_text(known, 20),
                "found " + escaped(options.task + " " + options.metric));
}

Baselines EvaluationGroups::baselines(const Measured& what) const {
    const std::string metric = is_accuracy(what.metric) ? "" : what.metric;
    const auto known = baselines_.find({what.task, metric, what.shots, what.text, what.subset});
    return known == baselines_.end() ? Baselines() : known->second;
}

std::set<std::int64_t> EvaluationGroups::lengths(const Measured& what) const {
    std::set<std::int64_t> lengths;
    for (const auto& group : groups_) {
        const auto measured = group.values.find(what);
        if (measured == group.values.end()) continue;
        for (const auto& [length, value] : measured->second) lengths.insert(length);
    }
    return lengths;
}

std::int64_t EvaluationGroups::chosen_length(const Measured& what, const FigureOptions& options) const {
    const std::set<std::int64_t> lengths = this->lengths(what);
    std::int64_t trained = 0;
    for (const auto& group : groups_) {
        if (!group.values.contains(what)) continue;
        if (group.training_length > 0)
            trained = trained > 0 ? std::min(trained, group.training_length) : group.training_length;
    }
    if (options.length) {
        if (lengths.contains(*options.length)) return *options.length;
        std::string known;
        for (const auto length : lengths) known += (known.empty() ? "" : ", ") + std::to_string(length);
        throw Error(ErrorCode::usage, "--length", "expected a length that was evaluated: " + known,
                    "found " + std::to_string(*options.length));
    }
    const auto beyond = trained > 0 ? lengths.upper_bound(trained) : lengths.end();
    return beyond == lengths.begin() ? *lengths.begin() : *std::prev(beyond);
}

std::string EvaluationGroups::error_note() const {
    if (most_seeds_ <= 1) return "One seed each; bars: standard error of the mean over the text.";
    return "Bars: standard deviation over " + std::to_string(most_seeds_) + " seeds" +
           (some_have_one_ ? "; where there is one, standard error of the mean over the text." : ".");
}

}  // namespace headscope::figures

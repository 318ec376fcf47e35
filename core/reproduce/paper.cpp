// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/paper.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/reproduce/papers_text.h"
#include "core/training/job/toml_document.h"

namespace headscope::reproduce {
namespace {

using nlohmann::json;

/// Refuses keys that nothing reads.
void check_keys(const JsonView& view, const std::set<std::string>& known) {
    for (const std::string& key : view.keys())
        if (!known.contains(key)) view.at(key).refuse(ErrorCode::format, "expected no such key");
}

json table_of(const JsonView& view, const char* key) {
    return view.has(key) ? view.at(key).object().value() : json::object();
}

template <class Read>
void each(const JsonView& view, const char* key, const Read& read) {
    for (std::size_t i = 0; view.has(key) && i < view.at(key).size(); ++i) read(view.at(key).at(i));
}

Model read_model(const JsonView& view) {
    check_keys(view, {"name", "label", "preset", "objective", "as", "extra", "scratch", "from_minutes", "tokens_a_word",
                      "mask", "stacks", "job"});
    Model model;
    model.name = view.at("name").string();
    model.label = view.at("label").string();
    model.preset = view.string_or("preset", "");
    model.objective = view.string_or("objective", "");
    model.as = view.string_or("as", "");
    model.extra = view.boolean_or("extra", false);
    model.scratch = view.boolean_or("scratch", false);
    model.from_minutes = view.number_or("from_minutes", 0);
    model.tokens_a_word = view.integer_or("tokens_a_word", 1);
    model.mask = view.integer_or("mask", -1);
    model.stacks = strings_or_none(view, "stacks");
    model.job = table_of(view, "job");
    return model;
}

Stage read_stage(const JsonView& view) {
    check_keys(view, {"name", "timed", "from", "share", "batch", "length", "most_steps", "text", "whole_batch", "warm",
                      "probed", "job", "scores", "counts", "by_length", "evaluate"});
    Stage stage;
    stage.name = view.at("name").string();
    stage.timed = view.string_or("timed", stage.name);
    stage.from = view.string_or("from", "");
    stage.share = view.number_or("share", 1);
    stage.batch = view.number_or("batch", 1);
    stage.length = view.integer_or("length", 1);
    stage.most_steps = view.integer_or("most_steps", stage.most_steps);
    stage.text = view.boolean_or("text", true);
    stage.whole_batch = view.boolean_or("whole_batch", false);
    stage.warm = view.boolean_or("warm", false);
    stage.probed = strings_or_none(view, "probed");
    stage.job = table_of(view, "job");
    stage.scores = table_of(view, "scores");
    stage.counts = table_of(view, "counts");
    stage.by_length = view.boolean_or("by_length", false);
    stage.evaluate = view.at("evaluate").strings();
    return stage;
}

Stack read_stack(const JsonView& view) {
    check_keys(view, {"name", "trial", "label", "subject", "standard", "extra", "models", "stages", "skip", "job"});
    Stack stack;
    stack.name = view.at("name").string();
    stack.trial = view.string_or("trial", "{model}");
    stack.label = view.string_or("label", "{label}");
    stack.subject = view.string_or("subject", "{model}");
    stack.standard = view.number_or("standard", 0);
    stack.extra = view.boolean_or("extra", false);
    stack.models = strings_or_none(view, "models");
    stack.stages = view.at("stages").strings();
    stack.skip = strings_or_none(view, "skip");
    stack.job = table_of(view, "job");
    return stack;
}

template <class Item>
const Item& named(const std::vector<Item>& all, std::string_view name, const char* where,
                  const char* expected = "expected one of the paper's", ErrorCode code = ErrorCode::format) {
    for (const Item& one : all)
        if (one.name == name) return one;
    throw Error(code, where, expected, "found " + escaped(std::string(name)));
}

}  // namespace

std::vector<std::string> strings_or_none(const JsonView& view, const char* key) {
    return view.has(key) ? view.at(key).strings() : std::vector<std::string>();
}

Paper read_paper(const std::string& name, const std::string& text) {
    Paper paper;
    paper.name = name;
    paper.document = training::parse_toml(text, name + ".toml").values();
    const JsonView view = paper.view();
    check_keys(view, {"title",  "summary", "plan",  "calibration", "groups",   "size",    "model",
                      "stage",  "stack",   "job",   "text",        "analysis", "merged",  "ending",
                      "timing", "figure",  "claim", "learned",     "report",   "printed", "data_set"});
    paper.title = view.at("title").string();
    paper.summary = view.at("summary").string();
    const JsonView plan = view.at("plan");
    check_keys(plan, {"sequence_length", "batch", "baseline", "like", "runs", "learn_tokens", "judge_tokens",
                      "stack_first", "one_by_one", "evaluation_tokens", "choices", "extras", "texts"});
    paper.sequence_length = plan.at("sequence_length").integer({16, 1 << 20});
    paper.batch = plan.at("batch").integer({1, 1 << 20});
    paper.baseline = plan.at("baseline").string();
    paper.like = plan.string_or("like", "");
    paper.runs = plan.at("runs").number(1);
    paper.learn_tokens = plan.at("learn_tokens").number(1);
    paper.judge_tokens = plan.at("judge_tokens").number(1);
    paper.stack_first = plan.boolean_or("stack_first", false);
    paper.one_by_one = plan.boolean_or("one_by_one", false);
    paper.evaluation_tokens = plan.at("evaluation_tokens").integers({1, 1 << 30});
    each(plan, "choices", [&](const JsonView& one) {
        paper.choices.push_back({one.at("seeds").integer({1, 1000}), one.at("extras").boolean()});
    });
    each(view, "model", [&](const JsonView& one) { paper.models.push_back(read_model(one)); });
    each(view, "stage", [&](const JsonView& one) { paper.stages.push_back(read_stage(one)); });
    each(view, "stack", [&](const JsonView& one) { paper.stacks.push_back(read_stack(one)); });
    for (const Stack& stack : paper.stacks)
        for (const std::string& stage : stack.stages) paper.stage(stage);
    paper.model(paper.baseline);
    return paper;
}

const std::vector<Paper>& papers() {
    static const std::vector<Paper> all = [] {
        std::vector<Paper> list;
        for (const auto& [name, text] : kPapersText) list.push_back(read_paper(name, text));
        return list;
    }();
    return all;
}

const Paper& paper(std::string_view name) {
    return named(papers(), name, "reproduce", "expected a paper that is replayed", ErrorCode::usage);
}

bool Paper::has_seeds() const {
    return std::any_of(choices.begin(), choices.end(), [](const Choice& choice) { return choice.seeds > 1; });
}

const Model& Paper::model(std::string_view wanted) const {
    return named(models, wanted, "paper: model");
}
const Stage& Paper::stage(std::string_view wanted) const {
    return named(stages, wanted, "paper: stage");
}
const Stack& Paper::stack(std::string_view wanted) const {
    return named(stacks, wanted, "paper: stack");
}

const json& Paper::size(const std::string& wanted) const {
    for (const json& one : document.at("size"))
        if (one.at("name") == wanted) return one;
    throw Error(ErrorCode::format, "paper: size", "expected one of the paper's", "found " + escaped(wanted));
}

const std::string& Paper::smallest() const {
    return document.at("size").front().at("name").get_ref<const std::string&>();
}

std::string Paper::timed_key(const std::string& timed, const Stage& stage) const {
    const std::string overhead = overhead_key(stage);
    return overhead == "run" ? timed : timed + "/" + overhead;
}

std::string Paper::overhead_key(const Stage& stage) const {
    const bool alike =
        std::all_of(stages.begin(), stages.end(), [&](const Stage& one) { return one.timed == stages.front().timed; });
    return alike ? "run" : stage.timed;
}

std::vector<std::string> Paper::names(const JsonView& at, const char* key) const {
    if (!at.at(key).is_string()) return at.at(key).strings();
    const std::string one = at.at(key).string();
    const json groups = table_of(view(), "groups");
    return groups.contains(one) ? groups.at(one).get<std::vector<std::string>>() : std::vector<std::string>{one};
}

std::string Paper::label(const std::string& subject) const {
    const std::string first = subject.substr(0, subject.find(' '));
    for (const Model& one : models)
        if (one.name == first) return one.label;
    return subject;
}

std::string filled(const std::string& text, const Words& words) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t begin = text.find('{', at), end = text.find('}', std::min(begin, text.size()));
        if (end == std::string::npos) return out + text.substr(at);
        const std::string word = text.substr(begin + 1, end - begin - 1);
        const auto with = words(word);
        if (!with) throw Error(ErrorCode::format, "paper", "expected a word that is known", "found {" + word + "}");
        out += text.substr(at, begin - at) + *with;
        at = end + 1;
    }
    return out;
}

json filled(json document, const Words& words) {
    if (document.is_string()) return filled(document.get<std::string>(), words);
    if (document.is_structured())
        for (json& item : document) item = filled(std::move(item), words);
    return document;
}

}  // namespace headscope::reproduce

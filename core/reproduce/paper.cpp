// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/paper.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/json/json_members.h"
#include "core/training/job/toml_document.h"

namespace headscope::reproduce {
namespace {

using nlohmann::json;

constexpr std::pair<const char*, const char*> kPaperTexts[] = {
#include "core/reproduce/papers.inc"
};

/// Refuses keys that are neither members nor read `apart`.
void read_row(const JsonView& view, const JsonMembers& needed, const JsonMembers& others,
              std::initializer_list<const char*> apart = {}) {
    JsonMembers all = needed;
    all.insert(all.end(), others.begin(), others.end());
    check_keys(view, all, apart);
    read_members(view, needed);
    read_given_members(view, others);
}

Model read_model(const JsonView& view) {
    Model model;
    read_row(view, members("name", &model.name, "label", &model.label),
             members("preset", &model.preset, "objective", &model.objective, "as", &model.as, "extra", &model.extra,
                     "scratch", &model.scratch, "from_minutes", &model.from_minutes, "most_seeds", &model.most_seeds,
                     "tokens_a_word", &model.tokens_a_word, "mask", &model.mask, "stacks", &model.stacks, "job",
                     &model.job));
    return model;
}

Stage read_stage(const JsonView& view) {
    Stage stage;
    read_row(view, members("name", &stage.name, "evaluate", &stage.evaluate),
             members("timed", &stage.timed, "from", &stage.from, "share", &stage.share, "batch", &stage.batch, "length",
                     &stage.length, "most_steps", &stage.most_steps, "text", &stage.text, "whole_batch",
                     &stage.whole_batch, "warm", &stage.warm, "probed", &stage.probed, "job", &stage.job, "scores",
                     &stage.scores, "counts", &stage.counts, "by_length", &stage.by_length));
    if (stage.timed.empty()) stage.timed = stage.name;
    return stage;
}

Stack read_stack(const JsonView& view) {
    Stack stack;
    read_row(
        view, members("name", &stack.name, "stages", &stack.stages),
        members("trial", &stack.trial, "label", &stack.label, "subject", &stack.subject, "standard", &stack.standard,
                "extra", &stack.extra, "models", &stack.models, "skip", &stack.skip, "job", &stack.job));
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

Paper read_paper(const std::string& name, const std::string& text) {
    Paper paper;
    paper.name = name;
    paper.document = training::parse_toml(text, name + ".toml").values();
    const JsonView view = paper.view();
    read_row(
        view, members("title", &paper.title, "summary", &paper.summary), {},
        {"plan",   "calibration", "groups", "size",   "model", "stage",   "stack",  "job",     "text",     "analysis",
         "merged", "ending",      "timing", "figure", "claim", "learned", "report", "printed", "data_set", "language"});
    const JsonView plan = view.at("plan");
    const JsonMembers needed{{"sequence_length", &paper.sequence_length, {16, 1 << 20}},
                             {"batch", &paper.batch, {1, 1 << 20}},
                             {"baseline", &paper.baseline},
                             {"runs", &paper.runs, {1}},
                             {"learn_tokens", &paper.learn_tokens, {1}},
                             {"judge_tokens", &paper.judge_tokens, {1}},
                             {"evaluation_tokens", &paper.evaluation_tokens, {1, 1 << 30}},
                             {"extras", &paper.extras}};
    read_row(plan, needed,
             members("like", &paper.like, "stack_first", &paper.stack_first, "one_by_one", &paper.one_by_one, "texts",
                     &paper.texts),
             {"choices"});
    for (const JsonView& one : plan.at("choices").items())
        paper.choices.push_back({one.at("seeds").integer({1, 1000}), one.at("extras").boolean()});
    for (const JsonView& one : paper.rows("model")) paper.models.push_back(read_model(one));
    for (const JsonView& one : paper.rows("stage")) paper.stages.push_back(read_stage(one));
    for (const JsonView& one : paper.rows("stack")) paper.stacks.push_back(read_stack(one));
    for (const Stack& stack : paper.stacks)
        for (const std::string& stage : stack.stages) paper.stage(stage);
    paper.model(paper.baseline);
    return paper;
}

const std::vector<Paper>& papers() {
    static const std::vector<Paper> all = [] {
        std::vector<Paper> list;
        for (const auto& [name, text] : kPaperTexts) list.push_back(read_paper(name, text));
        return list;
    }();
    return all;
}

const Paper& paper(std::string_view name) {
    return named(papers(), name, "reproduce", "expected a paper that is replayed", ErrorCode::usage);
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

std::vector<JsonView> Paper::rows(const char* key) const {
    return document.contains(key) ? view().at(key).items() : std::vector<JsonView>();
}

std::vector<std::string> Paper::names(const JsonView& at, const char* key) const {
    if (!at.at(key).is_string()) return at.at(key).strings();
    const std::string one = at.at(key).string();
    const auto groups = view().find("groups");
    return groups && groups->has(one) ? groups->at(one).strings() : std::vector<std::string>{one};
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

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/harness/longbench.h"

#include <algorithm>

#include "core/evaluation/metrics/long_answers.h"
#include "core/evaluation/metrics/python_text.h"

namespace headscope::evaluation {
namespace {

enum class Rule { f1, rouge, classes, code };

struct LongBenchTask {
    const char *name, *summary;
    Rule rule;
    std::int64_t tokens;
    bool one_line;
    std::string prompt;  ///< with {context} and {input}
};

const char* metric_of(Rule rule) {
    switch (rule) {
        case Rule::f1:
            return "qa_f1_score";
        case Rule::rouge:
            return "rouge_score";
        case Rule::classes:
            return "classification_score";
        case Rule::code:
            break;
    }
    return "code_sim_score";
}

std::string of_passages() {
    const std::string order =
        "Answer the question based on the given passages. Only give me the answer and do not output any other words.";
    return order + "\n\nThe following are given passages.\n{context}\n\n" + order + "\n\nQuestion: {input}\nAnswer:";
}

std::string of_article() {
    const auto order = [](const std::string& begin) {
        return begin +
               " as concisely as you can, using a single phrase or sentence if possible. If the question "
               "cannot be answered based on the information in the article, write \"unanswerable\". If the question "
               "is a yes/no question, answer \"yes\", \"no\", or \"unanswerable\". Do not provide any "
               "explanation.";
    };
    return "You are given a scientific article and a question. " + order("Answer the question") +
           "\n\nArticle: {context}\n\n " + order("Answer the question based on the above article") +
           "\n\nQuestion: {input}\n\nAnswer:";
}

const std::vector<LongBenchTask>& all_tasks() {
    static const std::vector<LongBenchTask> all{
        {"2wikimqa", "questions that need several pages of Wikipedia", Rule::f1, 32, false, of_passages()},
        {"hotpotqa", "questions that need several passages", Rule::f1, 32, false, of_passages()},
        {"multifieldqa_en", "questions about long texts of many fields", Rule::f1, 64, false,
         "Read the following text and answer briefly.\n\n{context}\n\nNow, answer the following question based on the "
         "above text, only give me the answer and do not output any other words.\n\nQuestion: {input}\nAnswer:"},
        {"qasper", "questions about a scientific article", Rule::f1, 128, false, of_article()},
        {"multi_news", "a summary of several news", Rule::rouge, 512, false,
         "You are given several news passages. Write a one-page summary of all news. \n\nNews:\n{context}\n\nNow, "
         "write a one-page summary of all the news.\n\nSummary:"},
        {"gov_report", "a summary of a report by a government agency", Rule::rouge, 512, false,
         "You are given a report by a government agency. Write a one-page summary of the report.\n\nReport:\n{context}"
         "\n\nNow, write a one-page summary of the report.\n\nSummary:"},
        {"trec", "the type of a question, by examples", Rule::classes, 64, true,
         "Please determine the type of the question below. Here are some examples of questions.\n\n{context}\n{input}"},
        {"triviaqa", "a trivia answer out of passages, by examples", Rule::f1, 32, true,
         "Answer the question based on the given passage. Only give me the answer and do not output any other words. "
         "The following are some examples.\n\n{context}\n{input}"},
        {"samsum", "a summary of a dialogue, by examples", Rule::rouge, 128, true,
         "Summarize the dialogue into a few short sentences. The following are some examples.\n\n{context}\n{input}"},
        {"lcc", "the next line of a file of code", Rule::code, 64, false,
         "Please complete the code given below. \n{context}Next line of code:"},
        {"repobench-p", "the next line of code, with other files of the project", Rule::code, 64, false,
         "Please complete the code given below. \n{context}{input}Next line of code:"}};
    return all;
}

const LongBenchTask& find(const HarnessTask& task) {
    std::string name = task.configuration;
    if (name.ends_with("_e")) name.resize(name.size() - 2);
    return *std::find_if(all_tasks().begin(), all_tasks().end(),
                         [&](const LongBenchTask& one) { return one.name == name; });
}

/// The prompt of a task by its rules.
std::string pattern_of(const HarnessTask& task) {
    const LongBenchTask& one = find(task);
    std::string pattern = one.prompt;
    if (task.rules == LongBenchRules::lm_eval) return pattern;
    if (one.rule == Rule::code) return pattern + "\n";
    if (one.one_line && one.rule != Rule::classes) pattern.insert(pattern.rfind('\n'), "\n");
    return pattern;
}

/// str.lstrip("\n").split("\n")[0].
std::string_view first_line(std::string_view said) {
    said.remove_prefix(std::min(said.find_first_not_of('\n'), said.size()));
    return said.substr(0, said.find('\n'));
}

/// The pattern with both texts in their places, as they are.
std::string filled(const std::string& pattern, const std::string& context, const std::string& input) {
    std::string text;
    for (std::size_t at = 0; at < pattern.size();) {
        const std::size_t begin = std::min(pattern.find('{', at), pattern.size());
        text.append(pattern, at, begin - at);
        if (begin == pattern.size()) break;
        const std::size_t end = pattern.find('}', begin);
        text += pattern.compare(begin, end - begin, "{context") == 0 ? context : input;
        at = end + 1;
    }
    return text;
}

std::string length_class(std::int64_t words) {
    return length_classes()[words < 4000 ? 0 : words < 8000 ? 1 : 2];
}

double score_of(const HarnessTask& task, std::string_view said, const std::string& truth,
                const std::vector<std::string>& classes) {
    switch (find(task).rule) {
        case Rule::f1:
            return qa_f1(said, truth);
        case Rule::rouge:
            return rouge_l(said, truth);
        case Rule::classes:
            return class_in_text(said, truth, classes);
        case Rule::code:
            break;
    }
    return line_similarity(said, truth, task.rules == LongBenchRules::thudm);
}

}  // namespace

std::vector<HarnessTask> longbench_tasks() {
    std::vector<HarnessTask> tasks;
    for (const bool balanced : {true, false}) {
        for (const LongBenchTask& one : all_tasks()) {
            HarnessTask task;
            task.configuration = std::string(one.name) + (balanced ? "_e" : "");
            task.name = "longbench_" + task.configuration;
            task.data_set = kLongBench;
            task.split = "test";
            task.summary = std::string("LongBench: ") + one.summary + (balanced ? ", lengths in balance" : "");
            task.kind = HarnessKind::said;
            task.metrics = {"score", metric_of(one.rule)};
            task.answer_tokens = one.tokens;
            if (one.one_line) task.stops = {"\n"};
            tasks.push_back(std::move(task));
        }
    }
    return tasks;
}

std::vector<std::string> longbench_set() {
    std::vector<std::string> names;
    for (const LongBenchTask& one : all_tasks()) names.push_back("longbench_" + std::string(one.name) + "_e");
    return names;
}

bool is_longbench(const HarnessTask& task) {
    return task.data_set == kLongBench;
}

HarnessTask with_thudm_rules(HarnessTask task) {
    task.rules = LongBenchRules::thudm;
    task.stops.clear();
    return task;
}

bool ends_at_line(const HarnessTask& task) {
    return task.rules == LongBenchRules::thudm && task.configuration.starts_with("samsum");
}

HarnessItem longbench_item(const HarnessTask& task, const JsonView& record) {
    const std::string input = record.at(record.has("input") ? "input" : "question").string();
    HarnessItem item;
    item.prompt = filled(pattern_of(task), record.at("context").string(), input);
    item.answers = record.at("answers").strings();
    if (record.has("all_classes")) item.classes = record.at("all_classes").strings();
    item.subset = length_class(record.at("length").integer({0, std::int64_t{1} << 40U}));
    return item;
}

double longbench_score(const HarnessTask& task, const HarnessItem& item, std::string_view said) {
    const LongBenchTask& one = find(task);
    if (task.rules == LongBenchRules::thudm) {
        if (one.one_line) said = first_line(said);
    } else if (one.rule != Rule::code) {
        said = trimmed(said);
    }
    double best = 0;
    for (const std::string& answer : item.answers) best = std::max(best, score_of(task, said, answer, item.classes));
    return best;
}

const std::vector<std::string>& length_classes() {
    static const std::vector<std::string> classes{"0-4k", "4-8k", "8k+"};
    return classes;
}

}  // namespace headscope::evaluation

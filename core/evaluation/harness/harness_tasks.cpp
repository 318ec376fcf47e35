// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/harness/harness_tasks.h"

#include <algorithm>

#include "core/evaluation/harness/longbench.h"

namespace headscope::evaluation {
namespace {

HarnessTask task(std::string name, std::string data_set, std::string configuration, std::string split,
                 std::string summary) {
    HarnessTask result;
    result.name = std::move(name);
    result.data_set = std::move(data_set);
    result.configuration = std::move(configuration);
    result.split = std::move(split);
    result.summary = std::move(summary);
    result.metrics = {"acc"};
    return result;
}

HarnessTask with_norm(HarnessTask task) {
    task.metrics.emplace_back("acc_norm");
    return task;
}

HarnessTask as(HarnessTask task, HarnessKind kind, std::vector<std::string> metrics) {
    task.kind = kind;
    task.metrics = std::move(metrics);
    return task;
}

HarnessTask said(HarnessTask task, std::int64_t tokens, const std::string& stop) {
    task = as(std::move(task), HarnessKind::said, {"contains"});
    task.answer_tokens = tokens;
    task.stops = {stop};
    return task;
}

std::vector<HarnessTask> make_short_tasks() {
    const auto last_word = [](HarnessTask task) {
        return as(std::move(task), HarnessKind::last_word, {"perplexity", "acc"});
    };
    return {
        with_norm(task("arc_easy", "ai2_arc", "ARC-Easy", "test", "science questions of schools, the easy ones")),
        with_norm(
            task("arc_challenge", "ai2_arc", "ARC-Challenge", "test", "science questions of schools, the hard ones")),
        task("boolq", "super_glue", "boolq", "validation", "yes or no, asked of a passage"),
        task("copa", "super_glue", "copa", "validation", "the likelier cause or effect of a premise"),
        with_norm(task("piqa", "piqa", "", "validation", "how something is done, of two ways")),
        with_norm(task("sciq", "sciq", "", "test", "science questions with a passage that helps")),
        task("rte", "glue", "rte", "validation", "whether a sentence follows from a text (GLUE)"),
        task("sglue_rte", "super_glue", "rte", "validation", "whether a sentence follows from a text (SuperGLUE)"),
        with_norm(task("hellaswag", "hellaswag", "", "validation", "how a scene goes on")),
        as(task("winogrande", "winogrande", "winogrande_xl", "validation", "which of two names fits a sentence's gap"),
           HarnessKind::partial, {"acc"}),
        with_norm(task("openbookqa", "openbookqa", "main", "test", "questions that one fact of science answers")),
        task("social_iqa", "siqa", "", "validation", "what people do and feel"),
        last_word(task("lambada_openai", "lambada_openai", "default", "test", "the last word of a passage")),
        last_word(task("lambada_standard", "lambada", "", "test", "the last word of a passage, lower case, tokenized")),
        as(task("wikitext", "wikitext_document_level", "wikitext-2-raw-v1", "test", "whole articles of Wikipedia"),
           HarnessKind::page, {"word_perplexity", "byte_perplexity", "bits_per_byte"}),
        said(task("fda", "based-fda", "default", "validation", "a value out of a report on a medical device"), 48,
             "\n"),
        said(task("swde", "based-swde-v2", "default", "validation", "a value out of a web page"), 48, "\n"),
        said(task("squad_completion", "based-squad", "default", "validation",
                  "an answer out of a passage, as its continuation"),
             256, "\n\n"),
        said(task("based_triviaqa", "based_triviaqa", "", "validation", "a trivia answer out of passages"), 48, "\n"),
        said(task("based_nq", "based_nq_2048", "", "validation", "an answer out of a page of Wikipedia"), 48, "\n"),
        said(task("based_drop", "based_drop", "", "validation", "an answer out of a paragraph"), 48, "\n"),
    };
}

std::vector<HarnessTask> make_tasks() {
    std::vector<HarnessTask> tasks = make_short_tasks();
    for (HarnessTask& task : longbench_tasks()) tasks.push_back(std::move(task));
    return tasks;
}

}  // namespace

const std::vector<HarnessTask>& harness_tasks() {
    static const std::vector<HarnessTask> tasks = make_tasks();
    return tasks;
}

const HarnessTask* find_harness_task(const std::string& name) {
    const auto& tasks = harness_tasks();
    const auto found = std::find_if(tasks.begin(), tasks.end(), [&](const auto& task) { return task.name == name; });
    return found == tasks.end() ? nullptr : &*found;
}

const std::vector<TaskSet>& task_sets() {
    static const std::vector<TaskSet> sets = {
        {"deconattn",
         "Deconstructing Attention",
         "tasks of the paper on the parts of attention",
         {"arc_easy", "boolq", "copa", "piqa", "sciq", "rte", "hellaswag", "wikitext", "lambada_openai"}},
        {"natsl",
         "NAtS-L",
         "tasks of the paper on NAtS-L: eight, and six of retrieval",
         {"wikitext", "lambada_openai", "piqa", "hellaswag", "winogrande", "openbookqa", "arc_challenge", "arc_easy",
          "swde", "squad_completion", "fda", "based_triviaqa", "based_nq", "based_drop"}},
        {"lazy",
         "Lazy Attention",
         "tasks of the paper on Lazy Attention",
         {"wikitext", "lambada_openai", "piqa", "hellaswag", "winogrande", "arc_easy", "arc_challenge", "social_iqa",
          "boolq"}},
        {"zero_shot",
         "All zero-shot tasks",
         "tasks of the three papers, without retrieval",
         {"arc_easy", "arc_challenge", "boolq", "copa", "piqa", "sciq", "rte", "hellaswag", "winogrande", "openbookqa",
          "social_iqa", "lambada_openai", "wikitext"}},
        {kLongBenchSet, "LongBench", "eleven tasks on long texts, lengths in balance", longbench_set()},
    };
    return sets;
}

}  // namespace headscope::evaluation

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/evaluate/evaluation_options.h"

#include <CLI/CLI.hpp>

#include "app/commands/options.h"
#include "core/model/load/residence.h"

namespace headscope::app {

void add_evaluation_options(CLI::App& command, EvaluationOptions& options) {
    add_option(command, "model", options.models,
               "Checkpoints, or folders of runs (their best snapshot); none with --predictions");
    add_option(command, "--adapter", options.adapter, "A folder with a LoRA adapter (PEFT) to merge into the model");
    add_option(command, "--average", options.average,
               "Evaluate the mean of each run's last N snapshots, instead of its best one")
        ->check(in_range<std::int64_t>(2, 10'000));
    add_option(command, "--task", options.tasks, "What to measure: headscope list tasks")->required()->delimiter(',');
    add_option(
        command, "--data", options.data,
        "Texts to evaluate: files, folders, patterns or corpora, a row for each, ENTRY or NAME=ENTRY (NAME defaults to "
        "the file's stem); else what the run held out. Of lm-eval's tasks: the folder of their data sets, "
        "TASK/SPLIT.jsonl; of RULER's: one with their items, else they are made; of classify, translation, squad and "
        "squad_v2: files of JSON lines, FILE or NAME=FILE, whose results are called NAME; of the last two also the "
        "original JSON, or a folder");
    add_option(
        command, "--length", options.lengths,
        "Context lengths in tokens: 128,256,512; of lm-eval's tasks one, the most that the model may read at once");
    add_option(command, "--shots", options.shots, "Examples in the prompt of lm-eval's tasks")
        ->check(in_range<std::int64_t>(0, 1 << 20));
    add_option(command, "--shots-rule", options.shots_rule,
               "drawn: from train, as lm-eval draws them; first: the first of train")
        ->check(one_of({"drawn", "first"}));
    add_option(command, "--limit", options.limit, "The first N items of lm-eval's tasks")
        ->check(CLI::NonNegativeNumber);
    add_option(command, "--bootstrap", options.bootstrap,
               "Resamples behind the error of lambada's perplexity (100000); 0: no error")
        ->check(in_range<std::int64_t>(0, std::int64_t{1} << 40U));
    add_flag(command, "--baselines", options.baselines, "Rows of chance and of the most frequent answer, too");
    add_option(command, "--items", options.items, "A line of JSON for each item and model: FILE.jsonl");
    add_option(command, "--prompts", options.prompts, "The same with the texts that were asked: FILE.jsonl");
    add_option(command, "--stride", options.stride,
               "Tokens that a window predicts after the first one; 0: disjoint windows")
        ->check(CLI::NonNegativeNumber);
    add_option(command, "--prefix", options.prefix,
               "The token before a text: auto (its beginning or end token), none, or an id");
    add_option(command, "--tokens", options.tokens, "Evaluate the first N tokens only")->check(CLI::NonNegativeNumber);
    add_option(command, "--sequences", options.sequences,
               "Sequences of a generated task (256), items of one of RULER's at each length (500)")
        ->check(in_range(1, 1 << 24));
    add_option(command, "--seed", options.seed,
               "Of generated tasks, corruptions and items (1), and of examples (1234)");
    add_option(command, "--task-option", options.task_options,
               "Option of a task: mqar.pairs=4, position_perplexity.bucket=2048, squad_completion.tokens=48, "
               "squad_v2.threshold=0.5, longbench.rules=thudm");
    add_option(command, "--haystack", options.haystack,
               "Text that hides RULER's needles: a file, folder, pattern or corpus; default kjv");
    add_option(command, "--dump", options.dump, "A folder for RULER's items as they were asked, TASK/test.jsonl");
    add_option(command, "--beams", options.beams,
               "Of translation: beams of the search, 1: greedy; else num_beams of the model's files, or 1")
        ->check(in_range<std::int64_t>(1, 1024));
    add_option(
        command, "--length-penalty", options.length_penalty,
        "Of translation: alpha of ((5 + length) / 6)^alpha, by which hypotheses' log-probabilities are divided; else "
        "the search that the model's files describe, or 0.6");
    add_option(command, "--batch", options.batch, "Of speed: samples of a pass")
        ->check(in_range<std::int64_t>(1, 1 << 20));
    add_option(command, "--skip", options.skip, "Whole blocks left out: 0,2,5-8, or others: all that are not standard");
    add_option(
        command, "--predictions", options.predictions,
        "Answers to score instead of a model's: FILE.jsonl, a line an item with \"generated\" or \"pred\"; of squad "
        "and squad_v2 with \"id\" too, or one object of answers by id. Of several of lm-eval's tasks a folder with "
        "TASK.jsonl");
    add_option(command, "--variant", options.variant,
               "Row of the models in tables of benchmarks, instead of benchmark.variant of their jobs");
    add_option(command, "-o,--output", options.output, "Results: .evaluation.h5, .csv or .json");
    add_option(command, "--dtype", options.dtype, "float32 or bfloat16")->check(one_of({"float32", "bfloat16"}));
    add_option(
        command, "--weights", options.weights,
        model::kResidenceHelp + std::string("; stream reads the file once for up to 262144 scored tokens, but once "
                                            "for each generated one"))
        ->check(one_of(model::residence_choices()));
    add_option(command, "--batch-tokens", options.batch_tokens,
               "Tokens of one forward pass; default: 4096, or as many as fit")
        ->check(in_range(1, 1 << 24));
    add_device_option(command, options.device);
    add_option(command, "--threads", options.threads, "0: all processors")->check(in_range(0, 4096));
    add_option(command, "--kernels", options.kernels, "auto, reference or one of headscope list kernels");
    add_flag(command, "--beyond-positions", options.beyond_positions, "Read past the trained positions");
    add_flag(command, "--json", options.json, "One JSON document");
}

}  // namespace headscope::app

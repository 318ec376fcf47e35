// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A cheap job for each objective, and jobs from its snapshots.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/data/tokenizer_choice.h"
#include "core/run/run_folder.h"
#include "core/training/job/job.h"
#include "tests/core/base/temporary_folder.h"

namespace headscope::test {

using Lines = std::vector<std::string>;

inline const std::vector<std::string> kWords = {"one", "two", "three", "four"};

/// Texts of some of the words, with what `more` makes of the first one's number, a JSON object a line.
inline std::string items(const char* text, const std::function<std::string(std::size_t)>& more) {
    std::string lines;
    for (std::size_t n = 0; n < 60; ++n) {
        std::string words = kWords[n % 4];
        for (std::size_t i = 0; i < n % 3; ++i) words += " " + kWords[(n / 4 + i) % 4];
        lines += std::string("{\"") + text + "\": \"" + words + "\", " + more(n % 4) + "}\n";
    }
    return lines;
}

struct Objective {
    const char* name;
    Lines lines;
    bool accurate = true;
};

/// A cheap job of each kind; what it reads is written into the folder.
inline std::vector<Objective> objectives(const TemporaryFolder& folder) {
    const auto wrote = [&](const char* name, const std::string& content) {
        write_file(folder / name, content);
        return "data.text=" + (folder / name).string();
    };
    const std::string classes =
        wrote("classes.jsonl", items("text", [](std::size_t n) { return "\"label\": " + std::to_string(n % 3); }));
    const std::string numbers =
        wrote("numbers.jsonl", items("text", [](std::size_t n) { return "\"label\": " + std::to_string(n) + ".5"; }));
    const std::string pairs =
        wrote("pairs.jsonl",
              items("source", [](std::size_t n) { return "\"target\": \"" + std::string(n + 1, 'x') + "\""; }));
    const std::string questions = wrote("questions.jsonl", items("context", [](std::size_t n) {
                                            // Every context begins with that word.
                                            return "\"question\": \"first\", \"answers\": {\"text\": [\"" + kWords[n] +
                                                   "\"], \"answer_start\": [0]}";
                                        }));
    const data::ChosenTokenizer bytes = data::byte_tokenizer();
    write_file(folder / "tokenizer.json", bytes.files.at(0).content);
    const std::string pieces = "data.tokenizer=" + (folder / "tokenizer.json").string();
    return {
        {"masked",
         {"objective.kind=masked", "objective.mask=0.3", "model.preset=nano-mhe-encoder", "model.mixer=mhe_mul"}},
        {"shuffle_random", {"objective.kind=shuffle_random", "model.preset=nano-mhe-encoder", "model.mixer=fnet"}},
        {"md5", {"objective.kind=shuffle_random", "model.preset=nano-hashformer-md5-pool"}},
        {"lsh", {"objective.kind=shuffle_random", "model.preset=nano-hashformer-lsh-add"}},
        {"lsh rows", {"objective.kind=shuffle_random", "model.preset=nano-hashformer-lsh-emb"}},
        {"characters", {"objective.kind=shuffle_random", "model.preset=nano-canine-like"}},
        {"lsh of pieces",
         {"objective.kind=shuffle_random", "model.preset=nano-hashformer-lsh-add",
          "model.embedding={kind=\"add\", hash=\"lsh\", bits=16, words=\"tokenizer\"}", pieces}},
        {"classify", {"objective.kind=classify", "objective.classes=3", "model.preset=nano-mhe-encoder", classes}},
        {"classify with a decoder", {"objective.kind=classify", "objective.classes=3", classes}},
        {"classify with a state",
         {"objective.kind=classify", "objective.classes=3", "model.mixer=gated_deltanet", classes}},
        {"number with a decoder", {"objective.kind=classify", "objective.classes=1", numbers}, false},
        {"classify hashes", {"objective.kind=classify", "objective.classes=3", "model.preset=nano-proformer", classes}},
        {"number", {"objective.kind=classify", "objective.classes=1", "model.preset=nano-mhe-encoder", numbers}, false},
        {"spans",
         {"objective.kind=spans", "objective.stride=4", "data.sequence_length=32", "model.preset=nano-mhe-encoder",
          questions}},
        {"translation",
         {"objective.kind=translation", "model.preset=nano-mhe-translation", "model.mixer=mhe_add", pairs}},
    };
}

inline Lines with(Lines lines, const Lines& more) {
    lines.insert(lines.end(), more.begin(), more.end());
    return lines;
}

inline std::filesystem::path snapshot_of(const std::filesystem::path& run, std::int64_t step) {
    return training::RunFolder{run}.snapshots() / training::snapshot_name(step);
}

/// A job from a checkpoint, whose sizes are its own.
inline training::JobFile job_from(const std::filesystem::path& checkpoint, const std::string& text,
                                  const Lines& lines) {
    training::JobFile job = training::read_job("[data]\ntext = \"" + text + "\"\n", "job");
    for (const std::string& line :
         with({"model.from=" + checkpoint.string(), "data.sequence_length=32", "data.validation=0.1",
               "training.steps=4", "training.batch=4", "training.threads=1", "optimizer.learning_rate=5e-3",
               "schedule.warmup_steps=1", "evaluation.every=2", "snapshots.every=2", "probe.every=0", "sample.every=2"},
              lines))
        set_key(job, line);
    return job;
}

}  // namespace headscope::test

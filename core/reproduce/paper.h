// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Papers that are replayed, each a file of resources/papers (docs/dev/add-paper.md): models, stacks, stages, claims,
// tables. Errors: Error format that names the file and the key.

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json/json.h"

namespace headscope::reproduce {

struct Model {
    std::string name;       ///< of its folders: "no-bias"
    std::string label;      ///< as the paper calls it; names files and figures
    std::string preset;     ///< {preset} in jobs: "lazy"
    std::string objective;  ///< {objective} in jobs and evaluations
    std::string as;         ///< the model that takes as long; empty: it is timed itself
    bool extra = false;     ///< trained with the time that is left
    bool scratch = false;   ///< skips the stage that others are tuned from
    double from_minutes = 0;
    std::int64_t most_seeds = 0;                    ///< 0: as many as the plan has
    std::int64_t tokens_a_word = 1;                 ///< its sequences are so much longer
    std::int64_t mask = -1;                         ///< position of the fixed token in each sequence; below 0: none
    std::vector<std::string> stacks;                ///< empty: all that list no models
    nlohmann::json job = nlohmann::json::object();  ///< keys of its job files

    const std::string& timed_as() const { return as.empty() ? name : as; }
};

/// One training run of a trial, and its evaluation.
struct Stage {
    std::string name;
    std::string timed;  ///< the stage that takes as long; itself
    std::string from;   ///< the stage whose last snapshot it tunes; empty: starts afresh
    double share = 1;   ///< of the plan's steps
    double batch = 1;   ///< of the plan's batch
    double length = 1;  ///< times the plan's sequence length
    std::int64_t most_steps = 1 << 24;
    bool text = true;                 ///< reads the text, with the paper's [text]
    bool whole_batch = false;         ///< as many sequences for models with longer ones
    bool warm = false;                ///< calibrated twice: the first time makes the token file
    std::vector<std::string> probed;  ///< models that are probed ten times
    nlohmann::json job = nlohmann::json::object();
    nlohmann::json scores = nlohmann::json::object();  ///< name in claims by metric
    nlohmann::json counts = nlohmann::json::object();  ///< name in claims by "parameters", "attention", "embedding"
    bool by_length = false;                            ///< scores get "@" and the length over the training length
    std::vector<std::string> evaluate;
};

/// A way to build models: which stages train it, and how its trials are named.
struct Stack {
    std::string name;
    /// Patterns of {model}, {stack}, {label}, {seed}, {-seed}.
    std::string trial = "{model}", label = "{label}", subject = "{model}";
    double standard = 0;  ///< share of layers that take as long as the baseline's
    bool extra = false;   ///< trained with the time that is left, one seed
    std::vector<std::string> models, stages;
    std::vector<std::string> skip;  ///< words of a second evaluation; its subject is "{model} skip"
    nlohmann::json job = nlohmann::json::object();
};

struct Choice {
    std::int64_t seeds = 1;
    bool extras = true;
};

struct Paper {
    std::string name, title, summary;
    std::string baseline;  ///< a model's name
    std::string like;      ///< the model in whose time others are counted that were not timed
    std::int64_t sequence_length = 0, batch = 0;
    double runs = 1;          ///< of a whole plan, for the choice of the size
    double learn_tokens = 0;  ///< of a run: more seeds and trials are planned where each still sees these
    double judge_tokens = 0;  ///< of a run: fewer decide nothing
    bool stack_first = false, one_by_one = false;
    std::string extras;                           ///< the trials of the time that is left, in words
    std::vector<std::string> texts;               ///< files made of the text: text, passages
    std::vector<std::int64_t> evaluation_tokens;  ///< from ten minutes on, and below
    std::vector<Choice> choices;
    std::vector<Model> models;
    std::vector<Stage> stages;
    std::vector<Stack> stacks;
    nlohmann::json document;

    const Model& model(std::string_view name) const;  ///< Error format for others, as stage() and stack()
    const Stage& stage(std::string_view name) const;
    const Stack& stack(std::string_view name) const;
    const nlohmann::json& size(const std::string& name) const;
    const std::string& smallest() const;
    /// "MODEL/STAGE", or "MODEL" where all stages take as long; likewise of overheads "STAGE" or "run".
    std::string timed_key(const std::string& model, const Stage& stage) const;
    std::string overhead_key(const Stage& stage) const;
    JsonView view() const { return {document, "resources/papers/" + name + ".toml"}; }
    std::vector<JsonView> rows(const char* key) const;  ///< of a list of tables; none where it is absent
    /// Entries of a list, a group of [groups], or the one name.
    std::vector<std::string> names(const JsonView& view, const char* key) const;
    std::string label(const std::string& subject) const;  ///< of its model, the first word
};

const std::vector<Paper>& papers();
const Paper& paper(std::string_view name);  ///< Error usage for others
Paper read_paper(const std::string& name, const std::string& text);

/// Replaces each {WORD} of a text, or of all texts of a document. Error format for a word that is not known.
using Words = std::function<std::optional<std::string>(const std::string&)>;
std::string filled(const std::string& text, const Words& words);
nlohmann::json filled(nlohmann::json document, const Words& words);

}  // namespace headscope::reproduce

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The tools of `headscope ask`: a class each in tools/, a line each in tools/list.inc.

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>

#include "core/ask/settings.h"
#include "core/base/progress.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/edits/editor.h"
#include "core/model/edits/intervention.h"
#include "core/store/ask/ask_file.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::model {
class Model;
struct ModelConfig;
}  // namespace headscope::model

namespace headscope::app {

using ask::AskOptions;

/// One run of a tool: the model with its edits, and the file that is filled.
struct AskRun {
    const AskOptions& options;
    const std::shared_ptr<const checkpoint::Checkpoint>& checkpoint;  ///< of the model in memory
    model::Model& model;
    const tokenizer::Tokenizer* tokenizer;         ///< null: none
    model::Editor* editor;                         ///< edits of every run; null: none
    std::vector<store::SequenceTokens> reference;  ///< of --reference-tokens
    store::AskRecord& record;
    std::function<void()> saved;  ///< rewrites the file now and then; called when cells are in place
    const std::vector<model::Intervention>& interventions;  ///< those of `editor`
    /// Frees `model`, closes its files and loads another checkpoint.
    std::function<model::Model&(const std::string& path)> load_other;
    const std::vector<std::filesystem::path>& inputs;  ///< of the run: no output replaces one
    Progress& progress;
    const Cancellation& cancellation;
};

/// A tool's own decoder inputs of an encoder-decoder: one for all texts, or one for each.
struct AskTargets {
    std::vector<std::string> texts, tokens;  ///< strings; files of arrays of ids
    std::string option;                      ///< named in errors
};

/// Reads texts by the options of every command: strings, arrays of ids, files. With empty `targets` the decoder of an
/// encoder-decoder reads those of --target-text and --target-tokens.
using AskTexts = std::function<std::vector<store::SequenceTokens>(
    const std::vector<std::string>& texts, const std::vector<std::string>& tokens,
    const std::vector<std::string>& files, const AskTargets& targets)>;

/// Everything of a model that a tool needs to make texts.
struct AskMaking {
    const checkpoint::Checkpoint& checkpoint;
    const model::ModelConfig& config;
    const tokenizer::Tokenizer* tokenizer;  ///< null: none
};

/// Made once a command line; holds the values of its own options.
class AskTool {
public:
    AskTool() = default;
    AskTool(const AskTool&) = delete;
    AskTool& operator=(const AskTool&) = delete;
    virtual ~AskTool() = default;

    virtual std::string name() const = 0;
    /// A line for `headscope ask --help`.
    virtual std::string help() const = 0;
    /// Adds the options of core/ask/options that this tool alone has. One that another tool reads, too, must be shared
    /// by AskOptions.
    virtual void add_options(CLI::App& command) { (void)command; }
    /// Metric where --metric is not given; empty: none is read.
    virtual std::string default_metric() const { return {}; }
    /// Its own options as JSON, for the file and --resume.
    virtual void store_options(nlohmann::json& settings) const { (void)settings; }
    /// Texts of AskRecord::sequences.
    virtual std::vector<store::SequenceTokens> read(const AskOptions& options, const AskTexts& texts) {
        return texts(options.job.texts, options.job.tokens, options.job.files, {});
    }
    /// True: run() chooses the texts of the file; --resume continues with those that it has.
    virtual bool keeps_texts() const { return false; }
    /// Tokens that its longest text may have, where it has more texts than those of read(); memory is planned for them.
    virtual std::int64_t longest_text() const { return 0; }
    /// Bytes that it takes beyond weights and passes, for texts of at most `tokens` tokens.
    virtual double extra_bytes(const model::ModelConfig& config, std::int64_t tokens) const {
        (void)config;
        (void)tokens;
        return 0;
    }
    /// Texts that it makes by itself, behind those of read().
    virtual std::vector<store::SequenceTokens> make(const AskMaking& from) const {
        (void)from;
        return {};
    }
    /// Throws UsageError for options of the command line ("--half") that have nothing to act on.
    virtual void check_given(const std::vector<std::string>& given) const { (void)given; }
    /// True: several checkpoints may be named.
    virtual bool takes_models() const { return false; }
    /// Files that an output must not replace, after read().
    virtual std::vector<std::filesystem::path> inputs() const { return {}; }
    /// Further files that it writes, none of which is an input.
    virtual std::vector<std::filesystem::path> outputs() const { return {}; }
    /// Folders that it makes; each must be new or empty.
    virtual std::vector<std::filesystem::path> output_folders() const { return {}; }
    /// Adds and fills tables; cells that have a number are done. Sets complete.
    virtual void run(AskRun& run) = 0;
    /// Path of the table that --csv writes.
    virtual std::string main_table(const store::AskRecord& record) const = 0;
};

/// One of each, in the order of the list.
std::vector<std::unique_ptr<AskTool>> ask_tools();

}  // namespace headscope::app

// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/ask/ask_input.h"
#include "app/commands/ask/ask_tool.h"
#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/loading.h"
#include "app/commands/option_use.h"
#include "app/commands/options.h"
#include "core/analysis/job_request.h"
#include "core/ask/cells.h"
#include "core/ask/edits/intervention_file.h"
#include "core/ask/generation.h"
#include "core/ask/series.h"
#include "core/ask/settings.h"
#include "core/ask/token_list.h"
#include "core/base/error.h"
#include "core/base/io/output_file.h"
#include "core/base/io/output_folder.h"
#include "core/base/process/os_error.h"
#include "core/checkpoint/fingerprint.h"
#include "core/model/load/memory.h"
#include "core/model/load/open_checkpoint.h"
#include "core/model/model.h"
#include "core/store/ask/ask_file.h"

namespace headscope::app {
namespace ask_command {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kSaveEvery = std::chrono::seconds(30);

/// The first part of a file that this command has otherwise: "model", or a setting with its value; empty: none.
std::string difference(const store::AskRecord& begun, const store::AskRecord& now) {
    if (begun.model_sha256 != now.model_sha256) return "model";
    if (begun.interventions != now.interventions) return "text of interventions";
    if (begun.settings_json == now.settings_json) return {};
    const auto before = nlohmann::json::parse(begun.settings_json, nullptr, false);
    const auto after = nlohmann::json::parse(now.settings_json, nullptr, false);
    if (before.is_object() && after.is_object())
        for (const auto& [key, value] : before.items())
            if (const auto found = after.find(key); found == after.end() || *found != value)
                return escaped(key, 40) + ", " + escaped(value.dump(), 100);
    return "list of settings";
}

/// The model, its texts and the file that is made.
class Session {
public:
    Session(const AskOptions& options, AskTool& tool, const Cancellation& cancellation)
        : options_(options), tool_(tool), cancellation_(cancellation) {}

    void run() {
        configure_compute(static_cast<int>(options_.job.threads), options_.job.kernels, options_.job.device);
        checkpoint_ = model::open_checkpoint(options_.job.model, "");
        inspection_ = model::inspect(*checkpoint_);
        tokenizer_ = tokenizer_of(*checkpoint_);
        read_texts();
        if (!options_.interventions.empty()) {
            inputs_.emplace_back(options_.interventions);
            plan_ = ask::read_interventions(options_.interventions,
                                            {inspection_.config, inspection_.sites, tokenizer_.get()});
            check_positions();
        }
        check_files();
        {
            checkpoint::FingerprintAhead fingerprint(checkpoint_);
            load();
            describe(fingerprint.get(cancellation_));
        }
        try {
            answer();
        } catch (const Stopped&) {
            save();
            throw;
        } catch (...) {
            save_rest();
            throw;
        }
        save();
        if (!options_.csv.empty()) write_csv();
        print(options_.output + "\n");
    }

private:
    std::vector<store::SequenceTokens> read(const std::vector<std::string>& texts,
                                            const std::vector<std::string>& tokens,
                                            const std::vector<std::string>& files, const AskTargets& targets) {
        analysis::AnalysisJob job = options_.job;
        std::string option = job.targets.empty() ? "--target-tokens" : "--target-text";
        if (!targets.texts.empty() || !targets.tokens.empty()) {
            job.targets = targets.texts;
            job.target_tokens = targets.tokens;
            option = targets.option;
        }
        job.texts = texts;
        job.tokens = tokens;
        job.files = files;
        const analysis::InputOptions reading =
            analysis::input_options(job, {*checkpoint_, inspection_, tokenizer_.get()});
        analysis::Input input = analysis::read_input(reading, tokenizer_.get(), &cancellation_);
        inputs_.insert(inputs_.end(), input.paths.begin(), input.paths.end());
        add_targets(job, option, input.sequences);
        for (const store::SequenceTokens& text : input.sequences) {
            if (!texts_hash_) break;
            lengths_.push_back(std::ssize(text.ids));
            if (text.target) lengths_.push_back(std::ssize(text.target->ids));
            texts_hash_->add(text);
        }
        return std::move(input.sequences);
    }

    /// Decoder inputs of an encoder-decoder. `option` is named in errors.
    void add_targets(const analysis::AnalysisJob& job, const std::string& option,
                     std::vector<store::SequenceTokens>& texts) {
        const bool given = !job.targets.empty() || !job.target_tokens.empty();
        if (!inspection_.config.encoder) {
            if (given)
                throw Error(ErrorCode::unsupported, option, "expected a model with an encoder and a decoder",
                            "found " + inspection_.config.family);
            return;
        }
        analysis::TargetOptions reading = analysis::target_options(job, inspection_.config);
        reading.option = option;
        inputs_.insert(inputs_.end(), reading.token_files.begin(), reading.token_files.end());
        auto targets = analysis::read_targets(reading, texts.size(), tokenizer_.get(), &cancellation_);
        for (std::size_t s = 0; s < texts.size(); ++s)
            texts[s].target = std::make_shared<const store::SequenceTokens>(std::move(targets[s]));
    }

    void read_texts() {
        texts_hash_.emplace();
        const auto texts = [this](const auto& strings, const auto& tokens, const auto& files, const auto& targets) {
            return read(strings, tokens, files, targets);
        };
        record_.sequences = tool_.read(options_, texts);
        for (auto& made : tool_.make({*checkpoint_, inspection_.config, tokenizer_.get()})) {
            lengths_.push_back(std::ssize(made.ids));
            if (made.target) lengths_.push_back(std::ssize(made.target->ids));
            record_.sequences.push_back(std::move(made));
        }
        if (!options_.reference_tokens.empty()) reference_ = read({}, options_.reference_tokens, {}, {});
        const std::vector<fs::path> own = tool_.inputs();
        inputs_.insert(inputs_.end(), own.begin(), own.end());
        texts_sha256_ = texts_hash_->finish();
        texts_hash_.reset();
    }

    /// Later texts of a corpus are not read yet. Generated tokens but the last have positions, too.
    void check_positions() const {
        if (tool_.keeps_texts()) return;
        std::int64_t made = options_.generate;
        if (options_.tool == "generate" && made == 0) made = ask::GenerationOptions().tokens;
        std::vector<std::int64_t> lengths = lengths_;
        for (std::int64_t& length : lengths) length += std::max<std::int64_t>(0, made - 1);
        model::check_positions(plan_.list, lengths);
    }

    /// No output may replace a file that is read. The files of other checkpoints are closed until their turn.
    void check_files() {
        for (const std::string& path : options_.models) {
            const auto opened = path == options_.job.model ? checkpoint_ : model::open_checkpoint(path, "");
            const auto own = files_of(*opened);
            inputs_.insert(inputs_.end(), own.begin(), own.end());
        }
        inputs_.insert(inputs_.end(), plan_.files.begin(), plan_.files.end());
        std::vector<fs::path> outputs = tool_.outputs();
        outputs.emplace_back(options_.output);
        if (!options_.csv.empty()) outputs.emplace_back(options_.csv);
        for (const fs::path& output : outputs) OutputFile::check_target(output, inputs_);
        for (const fs::path& folder : tool_.output_folders()) {
            OutputFolder::check_target(folder, inputs_);
            for (const fs::path& output : outputs)
                if (same_file(fs::absolute(output).parent_path(), folder))
                    throw Error(ErrorCode::usage, shown(output), "expected a file outside of " + shown(folder),
                                "found it inside");
        }
    }

    void load() {
        const bool bfloat16 = options_.job.dtype == "bfloat16";
        const auto precision = bfloat16 ? checkpoint::LoadAs::bfloat16 : checkpoint::LoadAs::float32;
        double rows = static_cast<double>(ask::kCellTokens);
        rows = std::max(rows, static_cast<double>(tool_.longest_text()));
        for (const auto& text : record_.sequences)
            rows = std::max(
                {rows, static_cast<double>(text.ids.size()), static_cast<double>(text.predicted().ids.size())});
        const double extra = extra_bytes();
        const auto residence = model::choose_residence(
            [&](model::Residence one) { return model::reading_bytes(inspection_, rows, 0, precision, one) + extra; },
            {precision, model::residence(options_.job.weights), true, "shorten the texts"});
        ConsoleProgress progress;
        model_ = model::Model::build(*checkpoint_, precision, &progress, &cancellation_, residence);
        if (plan_.list.empty()) return;
        plan_.read_values(*model_, &cancellation_);
        edits_.emplace(plan_.list, model_->config(), model_->sites());
    }

    /// Bytes beyond weights and passes: those of the tool, and of matrices that interventions edit.
    double extra_bytes() const {
        std::int64_t longest = tool_.longest_text();
        for (const std::int64_t length : lengths_) longest = std::max(longest, length);
        return tool_.extra_bytes(inspection_.config, longest) +
               (model::edits_matrices(plan_.list) ? matrix_edit_bytes(inspection_.config, longest) : 0);
    }

    model::Model& load_other(const std::string& path) {
        model_.reset();
        checkpoint_.reset();
        checkpoint_ = model::open_checkpoint(path, "");
        inspection_ = model::inspect(*checkpoint_);
        load();
        return *model_;
    }

    void describe(std::string sha256) {
        record_.tool = options_.tool;
        record_.settings_json = settings();
        describe_model(record_, options_.job.model, *checkpoint_, *model_, std::move(sha256));
        record_.interventions = plan_.toml;
        store::add_usual_dimensions(record_);
        std::error_code ignored;
        if (!options_.resume || !fs::exists(options_.output, ignored)) return;
        store::AskRecord begun = store::read_ask(options_.output);
        if (const std::string other = difference(begun, record_); !other.empty())
            throw Error(ErrorCode::usage, "--resume", "expected a file of the same command, texts and model",
                        "found one with another " + other);
        record_.tables = std::move(begun.tables);
        if (tool_.keeps_texts()) record_.sequences = std::move(begun.sequences);
        record_.created = begun.created;
        record_.program_version = begun.program_version;
    }

    /// The command line, for the file.
    std::string settings() const {
        nlohmann::json settings = ask::ask_settings(options_, texts_sha256_);
        tool_.store_options(settings);
        return ask::stored_settings(settings);
    }

    void answer() {
        ConsoleProgress progress;
        AskRun run{options_,
                   checkpoint_,
                   *model_,
                   tokenizer_.get(),
                   edits_ ? &*edits_ : nullptr,
                   std::move(reference_),
                   record_,
                   [this, last = Clock::now()]() mutable {
                       unsaved_ = true;
                       if (Clock::now() - last < kSaveEvery) return;
                       save();
                       last = Clock::now();
                   },
                   plan_.list,
                   [this](const std::string& path) -> model::Model& { return load_other(path); },
                   inputs_,
                   progress,
                   cancellation_};
        tool_.run(run);
    }

    void save() {
        if (tokenizer_) ask::add_words(record_, *tokenizer_);
        store::write_ask(options_.output, record_, inputs_);
        unsaved_ = false;
    }

    /// Saves cells ahead of an error, which is reported even if they cannot be saved.
    void save_rest() {
        if (!unsaved_) return;
        try {
            save();
        } catch (const std::exception&) {
            // The first error is the one to report.
        }
    }

    void write_csv() const {
        OutputFile file(options_.csv, inputs_, "table");
        file.append(store::ask_csv(record_, record_.table(tool_.main_table(record_))));
        file.publish();
    }

    const AskOptions& options_;
    AskTool& tool_;
    const Cancellation& cancellation_;
    std::shared_ptr<const checkpoint::Checkpoint> checkpoint_;
    model::Inspection inspection_;
    std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
    std::shared_ptr<model::Model> model_;
    ask::InterventionPlan plan_;
    std::optional<model::Interventions> edits_;
    std::vector<store::SequenceTokens> reference_;
    std::optional<ask::TextsHash> texts_hash_;  ///< of all texts, while these are read
    std::string texts_sha256_;
    std::vector<std::int64_t> lengths_;  ///< tokens of each of these texts
    std::vector<fs::path> inputs_;
    store::AskRecord record_;
    bool unsaved_ = false;  ///< cells are in place that the file lacks
};

void add_input(CLI::App& command, AskOptions& options) {
    add_list(command, "--text", options.job.texts);
    add_list(command, "--file", options.job.files);
    add_list(command, "--tokens", options.job.tokens);
    add_list(command, "--target-text", options.job.targets);
    add_list(command, "--target-tokens", options.job.target_tokens);
    add_list(command, "--reference-tokens", options.reference_tokens);
    add_option(command, "--bos", options.job.bos, "The token before the text: yes, no, auto")
        ->check(one_of({"yes", "no", "auto"}))
        ->group("Input");
    add_option(command, "--length", options.job.length, "Cut each text to N tokens")
        ->check(in_range<std::int64_t>(1, 1 << 24))
        ->group("Input");
}

void add_metric(CLI::App& command, AskOptions& options) {
    add_tool_option(command, "--metric", options.metric);
    add_tool_option(command, "--answer", options.answer);
    add_tool_option(command, "--against", options.against);
    add_tool_option(command, "--position", options.position);
}

}  // namespace
}  // namespace ask_command

void add_ask(CLI::App& app, Context& context) {
    using namespace ask_command;
    auto* command = app.add_subcommand(
        "ask", "Look into a model by lenses, activation patching, ablation and logit attribution, into an ask file");
    auto options = std::make_shared<AskOptions>();
    auto tools = std::make_shared<std::vector<std::unique_ptr<AskTool>>>(ask_tools());
    std::vector<std::string> names;
    std::string help = "One of:";
    for (const auto& tool : *tools) {
        names.push_back(tool->name());
        help += "\n" + tool->name() + ": " + tool->help();
    }
    add_option(*command, "tool", options->tool, help)->required()->check(one_of(names));
    add_option(*command, "model", options->models, "A checkpoint; series: several of one model, or a folder of them")
        ->required();
    add_option(*command, "-o,--output", options->output, "OUT.ask.h5")->required();
    add_option(*command, "--csv", options->csv, "The tool's main table as CSV, too");
    add_flag(*command, "--resume", options->resume, "Continue a file that was stopped");
    add_option(*command, "--interventions", options->interventions, "Edits of every run, a TOML file");
    add_input(*command, *options);
    add_metric(*command, *options);
    add_tool_option(*command, "--heads", options->heads);
    add_tool_option(*command, "--layers", options->job.layers);
    add_tool_option(*command, "--window", options->window);
    add_tool_option(*command, "--generate", options->generate);
    add_tool_option(*command, "--seed", options->seed);
    add_tool_option(*command, "--top", options->top);
    for (const auto& tool : *tools) tool->add_options(*command);
    add_option(*command, "--dtype", options->job.dtype, "float32 or bfloat16")->check(one_of({"float32", "bfloat16"}));
    add_option(*command, "--weights", options->job.weights, model::kResidenceHelp)
        ->check(one_of(model::residence_choices()));
    add_device_option(*command, options->job.device);
    add_option(*command, "--threads", options->job.threads, "0: all processors")
        ->check(in_range<std::int64_t>(0, 4096));
    add_option(*command, "--kernels", options->job.kernels, "auto, reference or one of headscope list kernels");
    command->callback([&context, options, tools, names, command] {
        const auto chosen = std::find(names.begin(), names.end(), options->tool) - names.begin();
        AskTool& tool = *tools->at(static_cast<std::size_t>(chosen));
        if (options->metric.empty()) options->metric = tool.default_metric();
        if (options->models.size() > 1 && !tool.takes_models())
            throw UsageError("ask " + options->tool + " takes one model; found " +
                             std::to_string(options->models.size()));
        check_options("ask", given_options(*command), {options->tool});
        tool.check_given(given_options(*command));
        context.command = [&context, options, tools, &tool] {
            if (tool.takes_models()) options->models = ask::series_checkpoints(options->models);
            options->job.model = options->models.front();
            Session(*options, tool, context.cancellation).run();
        };
    });
}

}  // namespace headscope::app

// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/ask/ask_input.h"
#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/loading.h"
#include "app/commands/option_use.h"
#include "app/commands/options.h"
#include "core/analysis/job_request.h"
#include "core/ask/ablate.h"
#include "core/ask/approximate.h"
#include "core/ask/attribution.h"
#include "core/ask/cells.h"
#include "core/ask/lens.h"
#include "core/base/error.h"
#include "core/base/io/output_file.h"
#include "core/model/load/memory.h"
#include "core/model/load/open_checkpoint.h"
#include "core/model/model.h"
#include "core/store/ask/ask_file.h"

namespace headscope::app {
namespace ask_command {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

const std::vector<std::string> kTools{"lens", "patch", "ablate", "attribution"};
constexpr auto kSaveEvery = std::chrono::seconds(30);

/// The model, its texts and the file that is made.
class Session {
public:
    Session(const AskOptions& options, const Cancellation& cancellation)
        : options_(options), cancellation_(cancellation) {}

    void run() {
        configure_compute(static_cast<int>(options_.job.threads), options_.job.kernels, options_.job.device);
        checkpoint_ = model::open_checkpoint(options_.job.model, "");
        inspection_ = model::inspect(*checkpoint_);
        tokenizer_ = tokenizer_of(*checkpoint_);
        read_texts();
        OutputFile::check_target(options_.output, inputs_);
        if (!options_.csv.empty()) OutputFile::check_target(options_.csv, inputs_);
        if (!options_.interventions.empty()) {
            inputs_.emplace_back(options_.interventions);
            plan_ = ask::read_interventions(options_.interventions,
                                            {inspection_.config, inspection_.sites, tokenizer_.get()});
        }
        load();
        describe();
        try {
            answer();
        } catch (const Stopped&) {
            save();
            throw;
        }
        save();
        if (!options_.csv.empty()) write_csv();
        print(options_.output + "\n");
    }

private:
    std::vector<store::SequenceTokens> read(const std::vector<std::string>& texts,
                                            const std::vector<std::string>& tokens,
                                            const std::vector<std::string>& files = {}) {
        analysis::AnalysisJob job = options_.job;
        job.texts = texts;
        job.tokens = tokens;
        job.files = files;
        const analysis::InputOptions reading =
            analysis::input_options(job, {*checkpoint_, inspection_, tokenizer_.get()});
        analysis::Input input = analysis::read_input(reading, tokenizer_.get(), &cancellation_);
        inputs_.insert(inputs_.end(), input.paths.begin(), input.paths.end());
        return std::move(input.sequences);
    }

    void read_texts() {
        if (options_.tool == "patch") {
            clean_ = read(options_.clean, options_.clean_tokens);
            record_.sequences = read(options_.corrupted, options_.corrupted_tokens);
        } else {
            record_.sequences = read(options_.job.texts, options_.job.tokens, options_.job.files);
        }
        if (!options_.reference_tokens.empty()) reference_ = read({}, options_.reference_tokens);
    }

    void load() {
        const bool bfloat16 = options_.job.dtype == "bfloat16";
        const auto precision = bfloat16 ? checkpoint::LoadAs::bfloat16 : checkpoint::LoadAs::float32;
        double rows = static_cast<double>(ask::kCellTokens);
        for (const auto& text : record_.sequences) rows = std::max(rows, static_cast<double>(text.ids.size()));
        const auto residence = model::choose_residence(
            [&](model::Residence one) { return model::reading_bytes(inspection_, rows, 0, precision, one); },
            {precision, model::residence(options_.job.weights), true, "shorten the texts"});
        ConsoleProgress progress;
        model_ = model::Model::build(*checkpoint_, precision, &progress, &cancellation_, residence);
        if (plan_.list.empty()) return;
        plan_.read_values(*model_, &cancellation_);
        edits_.emplace(plan_.list, model_->config(), model_->sites());
    }

    void describe() {
        record_.tool = options_.tool;
        record_.settings_json = settings_of(options_);
        record_.model_name = model_title(options_.job.model, *checkpoint_);
        if (record_.model_name.empty()) record_.model_name = checkpoint_->display_name();
        record_.model_type = model_->config().family;
        record_.model_sha256 = checkpoint_->fingerprint(cancellation_);
        record_.config_json = model_->config().to_json();
        record_.interventions = plan_.toml;
        record_.mixers = model_->mixers();
        record_.sites = model_->sites();
        store::add_usual_dimensions(record_);
        std::error_code ignored;
        if (!options_.resume || !fs::exists(options_.output, ignored)) return;
        store::AskRecord begun = store::read_ask(options_.output);
        if (begun.settings_json != record_.settings_json || begun.model_sha256 != record_.model_sha256 ||
            begun.interventions != record_.interventions)
            throw Error(ErrorCode::usage, "--resume", "expected a file of the same command and model",
                        "found another one");
        record_.tables = std::move(begun.tables);
        record_.created = begun.created;
        record_.program_version = begun.program_version;
    }

    void answer() {
        ConsoleProgress progress;
        const std::function<void()> saved = [this, last = Clock::now()]() mutable {
            if (Clock::now() - last < kSaveEvery) return;
            save();
            last = Clock::now();
        };
        model::Editor* const editor = edits_ ? &*edits_ : nullptr;
        const tokenizer::Tokenizer* const tokenizer = tokenizer_.get();
        if (options_.tool == "lens") {
            ask::LensOptions lens{{}, options_.top, editor, saved};
            if (options_.target != "next") lens.target = parse_tokens("--target", options_.target, tokenizer);
            ask::run_lens(*model_, lens, record_, progress, cancellation_);
        } else if (options_.tool == "attribution") {
            const ask::Metric choice = metric_of(options_, tokenizer);
            ask::AttributionOptions attribution{choice.answer, choice.against, choice.position, editor, saved};
            if (choice.all_positions)
                throw Error(ErrorCode::usage, "--position", "expected an index for ask attribution", "found all");
            ask::run_attribution(*model_, attribution, record_, progress, cancellation_);
        } else if (options_.tool == "ablate") {
            ask::AblateOptions ablate;
            ablate.how = options_.how == "mean"        ? ask::AblateBy::mean
                         : options_.how == "reference" ? ask::AblateBy::reference
                         : options_.how == "resample"  ? ask::AblateBy::resample
                                                       : ask::AblateBy::zero;
            ablate.metric = metric_of(options_, tokenizer);
            ablate.reference = reference_;
            ablate.importance = options_.importance;
            ablate.editor = editor;
            ablate.saved = saved;
            ask::run_ablate(*model_, ablate, record_, progress, cancellation_);
        } else {
            ask::PatchOptions patch;
            patch.points = points_of(options_.sites);
            patch.metric = metric_of(options_, tokenizer);
            patch.by = options_.by == "position" ? ask::SweepBy::position
                       : options_.by == "both"   ? ask::SweepBy::both
                       : options_.by == "cell"   ? ask::SweepBy::cell
                                                 : ask::SweepBy::head;
            patch.alignment = options_.align == "edges" ? ask::Alignment::edges : ask::Alignment::equal;
            patch.editor = editor;
            patch.saved = saved;
            ask::run_patch(*model_, clean_, patch, record_, progress, cancellation_);
            approximate(patch, progress);
        }
    }

    void approximate(const ask::PatchOptions& patch, Progress& progress) {
        const auto asked = [&](const char* name) {
            const auto& names = options_.approximation;
            return std::find(names.begin(), names.end(), name) != names.end();
        };
        if (asked("integrated") != !options_.integrated_sites.empty())
            throw Error(ErrorCode::usage, "--integrated-sites", "expected points with --approximation integrated alone",
                        options_.integrated_sites.empty() ? "found none" : "found some");
        if (options_.approximation.empty()) {
            if (!options_.correlation) return;
            throw Error(ErrorCode::usage, "--correlation", "expected --approximation, too", "found none");
        }
        ask::ApproximateOptions choice;
        choice.attribution = asked("attribution");
        choice.integrated = points_of(options_.integrated_sites);
        choice.steps = options_.steps;
        choice.correlation = options_.correlation;
        ask::run_approximations(*model_, clean_, patch, choice, record_, progress, cancellation_);
    }

    void save() const { store::write_ask(options_.output, record_, inputs_); }

    void write_csv() const {
        const char* const main = options_.tool == "lens"     ? "/lens/log_probability"
                                 : options_.tool == "ablate" ? "/ablate/head"
                                                             : "/attribution/head";
        const store::AskTable& table = options_.tool == "patch" ? record_.tables.at(2) : record_.table(main);
        OutputFile file(options_.csv, inputs_, "table");
        file.append(store::ask_csv(record_, table));
        file.publish();
    }

    const AskOptions& options_;
    const Cancellation& cancellation_;
    std::shared_ptr<const checkpoint::Checkpoint> checkpoint_;
    model::Inspection inspection_;
    std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
    std::shared_ptr<model::Model> model_;
    ask::InterventionPlan plan_;
    std::optional<model::Interventions> edits_;
    std::vector<store::SequenceTokens> clean_, reference_;
    std::vector<fs::path> inputs_;
    store::AskRecord record_;
};

void add_input(CLI::App& command, AskOptions& options) {
    using Texts = std::vector<std::string>;
    const auto list = [&](const char* name, Texts& value, const char* help) {
        add_option(command, name, value, help)->expected(1)->take_all()->group("Input");
    };
    list("--text", options.job.texts, "A text; may repeat");
    list("--file", options.job.files, "A text file; - is standard input; may repeat");
    list("--tokens", options.job.tokens, "A JSON array of arrays of ids; needs no tokenizer");
    list("--clean", options.clean, "patch: a clean text; may repeat");
    list("--corrupted", options.corrupted, "patch: the corrupted text of each, in the same order");
    list("--clean-tokens", options.clean_tokens, "patch: clean texts as a JSON array of arrays of ids");
    list("--corrupted-tokens", options.corrupted_tokens, "patch: corrupted texts, likewise");
    list("--reference-tokens", options.reference_tokens,
         "ablate --how reference or resample: texts as a JSON array of arrays of ids");
    add_option(command, "--bos", options.job.bos, "The token before the text: yes, no, auto")
        ->check(one_of({"yes", "no", "auto"}))
        ->group("Input");
    add_option(command, "--length", options.job.length, "Cut each text to N tokens")
        ->check(in_range<std::int64_t>(1, 1 << 24))
        ->group("Input");
}

void add_choices(CLI::App& command, AskOptions& options) {
    std::vector<std::string> metrics;
    for (std::int64_t k = 0; k < ask::kMetricKinds; ++k)
        metrics.emplace_back(ask::name(static_cast<ask::MetricKind>(k)));
    add_option(command, "--metric", options.metric,
               "patch, ablate: logit_difference, logit, log_probability, probability, kl or loss")
        ->check(one_of(metrics));
    add_option(command, "--answer", options.answer, "Tokens of the answer: ids, or \"strings\" of one token each");
    add_option(command, "--against", options.against, "Tokens that the answer is compared with");
    add_option(command, "--position", options.position,
               "Where the metric is read: an index, -1 the last, or all: the mean over positions");
    add_option(command, "--target", options.target, "lens: next (the text's next token), or tokens");
    add_option(command, "--top", options.top, "lens: likeliest tokens that are kept")
        ->check(in_range<std::int64_t>(1, 1000));
    add_option(command, "--sites", options.sites, "patch: points such as hidden,attention_output,head_output,pattern");
    add_option(command, "--by", options.by, "patch: sweep heads by head, position, both, or cell (pattern)")
        ->check(one_of({"head", "position", "both", "cell"}));
    add_option(command, "--approximation", options.approximation,
               "patch: attribution (one backward pass), integrated (gradients along the path to the clean run)")
        ->delimiter(',')
        ->check(one_of({"attribution", "integrated"}));
    add_option(command, "--integrated-sites", options.integrated_sites, "patch: points of --approximation integrated");
    add_option(command, "--steps", options.steps, "patch: steps of integrated gradients")
        ->check(in_range<std::int64_t>(1, 4096));
    add_flag(command, "--correlation", options.correlation,
             "patch: rank correlation of approximations with exact values");
    add_flag(command, "--importance", options.importance, "ablate: importance of heads by gradients of the loss, too");
    add_option(command, "--align", options.align,
               "patch: equal lengths, or edges: the common beginning and end keep their positions")
        ->check(one_of({"equal", "edges"}));
    add_option(command, "--how", options.how, "ablate: zero, mean, reference or resample")
        ->check(one_of({"zero", "mean", "reference", "resample"}));
}

}  // namespace
}  // namespace ask_command

void add_ask(CLI::App& app, Context& context) {
    using namespace ask_command;
    auto* command = app.add_subcommand(
        "ask", "Look into a model by lenses, activation patching, ablation and logit attribution, into an ask file");
    auto options = std::make_shared<AskOptions>();
    add_option(*command, "tool", options->tool, "lens, patch, ablate or attribution")
        ->required()
        ->check(one_of(kTools));
    add_option(*command, "model", options->job.model, "A checkpoint")->required();
    add_option(*command, "-o,--output", options->output, "OUT.ask.h5")->required();
    add_option(*command, "--csv", options->csv, "The tool's main table as CSV, too");
    add_flag(*command, "--resume", options->resume, "Continue a file that was stopped");
    add_option(*command, "--interventions", options->interventions, "Edits of every run, a TOML file");
    add_input(*command, *options);
    add_choices(*command, *options);
    add_option(*command, "--dtype", options->job.dtype, "float32 or bfloat16")->check(one_of({"float32", "bfloat16"}));
    add_option(*command, "--weights", options->job.weights, model::kResidenceHelp)
        ->check(one_of(model::residence_choices()));
    add_device_option(*command, options->job.device);
    add_option(*command, "--threads", options->job.threads, "0: all processors")
        ->check(in_range<std::int64_t>(0, 4096));
    add_option(*command, "--kernels", options->job.kernels, "auto, reference or one of headscope list kernels");
    command->callback([&context, options, command] {
        if (options->metric.empty()) options->metric = options->tool == "patch" ? "logit_difference" : "loss";
        check_options("ask", given_options(*command), {options->tool});
        context.command = [&context, options] { Session(*options, context.cancellation).run(); };
    });
}

}  // namespace headscope::app

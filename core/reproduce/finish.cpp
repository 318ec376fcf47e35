// SPDX-License-Identifier: GPL-3.0-or-later
// Makes figures and the report of measured values.

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/machine/processors.h"
#include "core/base/process/in_threads.h"
#include "core/base/process/machine.h"
#include "core/base/text/text.h"
#include "core/reproduce/files.h"
#include "core/reproduce/runner.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::reproduce {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMostPassageBytes = 32 << 20;

std::string at_length(const std::string& name, std::int64_t length, const Paper& paper) {
    return name + printf_text("@%g", static_cast<double>(length) / static_cast<double>(paper.sequence_length));
}

/// Mean tokens of a passage for a model: words are fewer than pieces, characters more.
std::int64_t passage_tokens(const fs::path& checkpoint, const fs::path& passages) {
    const auto tokenizer = tokenizer::Tokenizer::from_folder(checkpoint);
    const auto lines = separated_parts(read_small_file(passages, kMostPassageBytes, "passages"), '\n');
    const std::int64_t count = std::ssize(lines);
    std::int64_t tokens = 0;
    for (const std::string& line : lines) {
        const auto document = parse_json(line, "passages");
        tokens += std::ssize(tokenizer->encode(JsonView(document, "passages").at("text").string(), true).ids);
    }
    return count == 0 ? 1 : (tokens + count / 2) / count;
}

}  // namespace

/// Training steps and forward passes, nothing else running.
void Runner::time_models() {
    if (!paper_.view().has("timing")) return;
    report_progress("timing");
    const Strings names = paper_.view().at("timing").at("models").strings();
    const fs::path file = options_.folder / "timing.json";
    if (!fs::exists(file)) {
        nlohmann::json times;
        for (const std::string& name : names)
            attempt(name + " could not be timed", [&] {
                const training::JobFile job = timing_job(plan_, paper_.model(name));
                const double step = time_training(job, "timing-" + name).step;
                times[name] = 1000 * step / static_cast<double>(job.training.batch);
            });
        remove_calibration();
        write_whole_file(file, json_text(times));
    }
    const auto document = read_json_file(file, kLargestPlan, "times");
    const JsonView times(document, file.string());
    for (const std::string& name : names)
        if (times.has(name)) measured_.set(name, "training", times.at(name).number(0));
    for (const Trial& trial : plan_.trials) {
        if (trial.seed != 1 || !is_done(trial) || fs::exists(speed_file(trial))) continue;
        attempt(trial.name + " could not be timed", [&] {
            const fs::path model = last_model(trial);
            const auto tokens = passage_tokens(model, options_.folder / "passages" / "test.jsonl");
            compute({"evaluate", model.string(), "--task", "speed", "--length",
                     std::to_string(std::min(tokens, paper_.sequence_length * trial.model->tokens_a_word))},
                    {}, trial, speed_file(trial));
        });
    }
}

/// Runs of the program after training: latency, costs.
void Runner::do_endings() {
    for (const JsonView& ending : paper_.rows("ending")) {
        const fs::path output = options_.folder / ending.at("output").string();
        if (fs::exists(output)) continue;
        report_progress(ending.at("doing").string());
        Strings words = filled_words(ending.at("words").strings());
        if (ending.has("links")) {
            Strings links;
            for (const Trial* trial : done_trials(ending.at("links"))) links.push_back(model_link(*trial).string());
            if (links.empty()) continue;
            words.insert(words.begin() + 1, links.begin(), links.end());
        }
        words.insert(words.end(), {"-o", output.string()});
        attempt(ending.at("missing").string(), [&] { own(words); });
    }
}

void Runner::gather() {
    report_progress("gathering");
    for (const Trial& trial : plan_.trials)
        if (is_done(trial)) gather_trial(trial);
    if (measured_.values.empty())
        throw Error(ErrorCode::usage, "reproduce", "expected time for at least one model",
                    "found none trained" + (missing_.empty() ? "" : ": " + missing_.front()));
    for (const JsonView& ending : paper_.rows("ending"))
        if (fs::exists(options_.folder / ending.at("output").string())) gather_ending(ending);
    for (const JsonView& one : paper_.rows("merged")) merge(one);
}

void Runner::gather_trial(const Trial& trial) {
    const PaperCode code = paper_code(paper_);
    for (const Stage* stage : plan_.stages_of(trial))
        for (const bool skip : {false, true}) {
            const fs::path file = scores_file(trial, *stage, skip);
            if (!fs::exists(file)) continue;
            const store::Evaluation scores = store::read_evaluation(file);
            if (scores.models.empty()) continue;
            const std::string subject = skip ? trial.model->name + " skip" : trial.subject();
            for (const auto& one : scores.results) {
                if (!stage->scores.contains(one.metric)) continue;
                const std::string name = stage->scores.at(one.metric).get<std::string>();
                measured_.add(subject, stage->by_length ? at_length(name, one.length, paper_) : name, one.value,
                              one.error);
            }
            const auto& model = scores.models.front();
            for (const auto& [counted, name] : stage->counts.items()) {
                const std::int64_t count = counted == "parameters"  ? model.parameters
                                           : counted == "attention" ? model.attention_parameters
                                                                    : model.embedding_parameters;
                if (count >= 0) measured_.set(subject, name.get<std::string>(), static_cast<double>(count));
            }
        }
    if (fs::exists(speed_file(trial)))
        for (const auto& one : store::read_evaluation(speed_file(trial)).results)
            if (one.metric == "forward_ms") measured_.set(trial.subject(), "forward", one.value);
    for (const JsonView& one : analyses_of(trial))
        if (code.read_analysis != nullptr)
            code.read_analysis(analysis_file(trial, one), trial.subject(), one.string_or("text", ""), measured_);
    const Stage& first = *plan_.stages_of(trial).front();
    if (code.read_run != nullptr && contains(first.probed, trial.model->name))
        code.read_run(run_folder(trial, first), trial.subject(), measured_);
}

/// Results by model and length, or a table of numbers by mixer.
void Runner::gather_ending(const JsonView& ending) {
    const fs::path file = options_.folder / ending.at("output").string();
    if (file.extension() == ".h5") {
        const store::Evaluation timed = store::read_evaluation(file);
        for (const auto& one : timed.results)
            for (const Model& model : paper_.models)
                if (timed.models.at(static_cast<std::size_t>(one.model)).name == model.label)
                    measured_.set(model.name,
                                  at_length(one.metric == "seconds" ? one.task : one.metric, one.length, paper_),
                                  one.value);
        return;
    }
    const Strings columns = ending.at("columns").strings();
    Strings header;
    for (const std::string& line : separated_parts(read_small_file(file, kLargestPlan, "table"), '\n')) {
        const Strings cells = separated_parts(line, ',');
        if (header.empty()) {
            header = cells;
            continue;
        }
        std::vector<double> row;
        for (const std::string& column : columns) {
            const auto at = static_cast<std::size_t>(std::find(header.begin(), header.end(), column) - header.begin());
            row.push_back(at < cells.size() && !cells[at].empty() ? std::strtod(cells[at].c_str(), nullptr)
                                                                  : std::nan(""));
        }
        auto& table = measured_.matrices[{cells.front(), "cost"}];
        table.resize(1);
        table.front().push_back(std::move(row));
    }
}

/// An evaluation file for figures: models named by their label, seeds of one alike.
void Runner::merge(const JsonView& view) const {
    const bool one_model = view.boolean_or("one_model", false), skipped = view.boolean_or("skipped", false);
    store::Evaluation all;
    for (const Trial* trial : done_trials(view)) {
        const std::string label = trial_of(*trial->model, *trial->stack).label();
        store::Evaluation merged;
        for (const Stage* stage : plan_.stages_of(*trial)) {
            store::Evaluation own = store::read_evaluation(scores_file(*trial, *stage));
            if (one_model) {  // the last stage's: before it was tuned it had another head
                std::erase_if(own.results, [&](const auto& one) { return !stage->scores.contains(one.metric); });
                merged.models.clear();
            }
            append(merged, std::move(own));
            if (const fs::path skip = scores_file(*trial, *stage, true); skipped && fs::exists(skip))
                append(merged, store::read_evaluation(skip));
        }
        if (one_model && !merged.models.empty()) {
            if (fs::exists(speed_file(*trial))) {
                const auto timed = store::read_evaluation(speed_file(*trial)).results;
                merged.results.insert(merged.results.end(), timed.begin(), timed.end());
            }
            merged.models.front().job = label;
            merged.models.front().training_length = paper_.sequence_length;
            for (auto& one : merged.results) {  // models of characters have as much text in longer sequences
                one.model = 0;
                one.length = paper_.sequence_length;
            }
        }
        for (auto& model : merged.models) {
            model.name = label + (model.skipped.empty() ? "" : " skip");
            // Figures group models by mixer, and several of these have the same.
            if (view.boolean_or("by_label", false)) model.mixer = label;
        }
        append(all, std::move(merged));
    }
    if (all.models.empty()) return;
    all.settings_json = nlohmann::json{{"reproduction", paper_.name}}.dump();
    store::write_evaluation(options_.folder / (view.at("file").string() + ".evaluation.h5"), all);
    if (view.boolean_or("csv", false))
        write_whole_file(options_.folder / (view.at("file").string() + ".csv"), store::evaluation_csv(all));
}

/// As PDF, PNG and CSV; the report names one that cannot be drawn, with the reason.
void Runner::draw_figure(const std::string& name, const std::string& caption, Strings arguments) {
    const fs::path base = options_.folder / "figures" / name;
    arguments.insert(arguments.begin(), "export");
    arguments.insert(arguments.end(), {"-o", std::string()});
    const bool drawn = attempt("Figure " + name + " could not be drawn", [&] {
        for (const char* ending : {".pdf", ".png", ".csv"}) {
            arguments.back() = base.string() + ending;
            own(arguments);
        }
    });
    const std::lock_guard lock(mutex_);
    if (drawn) drawn_.push_back({name, caption});
}

void Runner::draw() {
    report_progress("drawing");
    std::vector<std::function<void()>> work;
    Strings order;
    for (const JsonView& figure : paper_.rows("figure")) {
        Strings files;
        if (figure.has("files"))
            for (const std::string& one : filled_words(figure.at("files").strings()))
                if (fs::exists(one)) files.push_back(one);
        if (figure.has("runs"))
            for (const Trial* trial : done_trials(figure.at("runs")))
                files.push_back(run_folder(*trial, *plan_.stages_of(*trial).front()).string());
        if (figure.has("analyses"))
            for (const Trial* trial : done_trials(figure.at("analyses")))
                for (const JsonView& one : analyses_of(*trial)) files.push_back(analysis_file(*trial, one).string());
        if (figure.has("preset")) files.push_back(figure.at("preset").string());
        if (std::ssize(files) < figure.integer_or("least", 1)) continue;
        files.emplace_back("--figure");
        const Strings recipe = figure.at("recipe").strings();
        files.insert(files.end(), recipe.begin(), recipe.end());
        order.push_back(figure.at("name").string());
        work.emplace_back([this, files, name = order.back(), caption = figure.at("caption").string()] {
            draw_figure(name, caption, files);
        });
    }
    in_threads(workers_now(plan_.workers), work);
    const auto place = [&](const ReportFigure& one) { return std::find(order.begin(), order.end(), one.name); };
    std::sort(drawn_.begin(), drawn_.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
}

fs::path Runner::write_report() {
    report_progress("writing the report");
    const std::string processor = processor_name();
    ReportInput input{.plan = plan_,
                      .measured = measured_,
                      .figures = drawn_,
                      .missing = missing_,
                      .machine = std::to_string(usable_processors()) + " cores of " +
                                 (processor.empty() ? "an unnamed processor" : escaped(processor)),
                      .program_version = "headscope " + host_.version,
                      .launch = joined_text(options_.launch, " "),
                      .seconds = spent(),
                      .tables = tables_};
    const Trial& first = plan_.trials.front();
    const std::vector<double> seconds =
        is_done(first) ? step_seconds(run_folder(first, *plan_.stages_of(first).front())) : std::vector<double>();
    if (!seconds.empty())
        input.tokens_per_second =
            static_cast<double>(paper_.batch * paper_.sequence_length) / seconds[seconds.size() / 2];
    write_whole_file(report_file(), report_markdown(input));
    return report_file();
}

}  // namespace headscope::reproduce

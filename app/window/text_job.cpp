// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/text_job.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/commands/loading.h"
#include "app/window/files/model_place.h"
#include "core/analysis/job.h"
#include "core/analysis/job_request.h"
#include "core/analysis/work_plan.h"
#include "core/base/error.h"
#include "core/checkpoint/adapter.h"
#include "core/checkpoint/special_weights.h"
#include "core/figures/token_text.h"
#include "core/model/load/open_checkpoint.h"
#include "core/model/towers/check_batch.h"
#include "core/workspace/token_display.h"

namespace headscope::app {
namespace {

/// Tokens in all sequences of a preview: the window takes and frees them in one step.
constexpr std::int64_t kMostChips = 60'000;

constexpr std::size_t kMostOfWord = 24;  // characters

using widgets::TextChoice;
using widgets::TextSource;

/// The length that a text is cut to; 0: none.
std::int64_t length_of(const OpenModel& model, const TextChoice& choice) {
    if (choice.length > 0 || choice.whole || choice.beyond_positions || choice.tokens) return choice.length;
    return model.inspection.config.max_positions;
}

std::vector<std::string> record_of(const TextChoice& choice) {
    std::vector<std::string> names;
    const auto add = [&names](bool chosen, const char* name) {
        if (chosen) names.emplace_back(name);
    };
    add(choice.maps, "maps");
    add(choice.states, "states");
    add(choice.logits, "logits");
    add(choice.experts, "experts");
    add(choice.norms, "norms");
    add(choice.implicit, "implicit");
    add(choice.branches, "branch-weights");
    return names;
}

analysis::AnalysisJob job_of(const OpenModel& model, const TextChoice& choice) {
    constexpr const char* kBos[] = {"auto", "yes", "no"};
    analysis::AnalysisJob job;
    job.model = model.file->path().string();
    for (const TextSource& source : choice.sources) {
        if (!source.used || (source.kind == TextSource::Kind::text && source.value.isEmpty())) continue;
        auto& values = source.kind == TextSource::Kind::file      ? job.files
                       : source.kind == TextSource::Kind::example ? job.examples
                                                                  : job.texts;
        values.push_back(source.value.toStdString());
    }
    if (!choice.pair.isEmpty()) job.pairs.push_back(choice.pair.toStdString());
    if (!choice.target.isEmpty()) job.targets.push_back(choice.target.toStdString());
    job.bos = kBos[static_cast<int>(choice.first)];
    job.chat = choice.chat;
    job.windows = choice.windows;
    job.repeat_token = choice.repeat_token;
    job.length = length_of(model, choice);
    job.segment = choice.segment;
    job.memory = choice.memory;
    job.record = record_of(choice);
    job.switch_off = choice.switch_off.toStdString();
    job.switch_off_how = choice.mean ? "mean" : "zero";
    job.interventions = choice.interventions.place.toStdString();
    job.beyond_positions = choice.beyond_positions;
    job.labels = choice.labels.toStdString();
    job.device = choice.device.toStdString();
    job.threads = compute_threads();
    return job;
}

analysis::JobModel job_model(const OpenModel& model) {
    return {*model.file, model.inspection, model.tokenizer.get()};
}

/// Chips of one sequence, `most` of them: parts of one character are joined, and show it once.
widgets::TokenPreview::Sequence chips_of(const store::SequenceTokens& tokens, std::int64_t most) {
    widgets::TokenPreview::Sequence sequence;
    sequence.tokens = static_cast<std::int64_t>(tokens.ids.size());
    const workspace::TokenDisplay display(tokens);
    const std::int64_t shown = std::min(most, display.size());
    sequence.chips.reserve(static_cast<std::size_t>(shown) + 1);
    for (const auto& token : display.chips(0, shown)) {
        widgets::TokenPreview::Chip chip;
        chip.text = token.part == 1 ? QString::fromStdString(token.label) : QStringLiteral("·%1").arg(token.part);
        chip.special = token.special;
        chip.joined = token.part < token.parts;
        chip.hint = QObject::tr("Token %1, id %2").arg(token.token).arg(token.id);
        if (token.parts > 1)
            chip.hint += QObject::tr(", part %1 of the %2 of %3")
                             .arg(token.part)
                             .arg(token.parts)
                             .arg(QString::fromStdString(token.label));
        if (token.special) chip.hint += QObject::tr(", special: no text of its own");
        sequence.chips.push_back(std::move(chip));
    }
    if (shown < display.size()) {
        widgets::TokenPreview::Chip more;
        more.text = QStringLiteral("…");
        more.hint = QObject::tr("%1 more tokens are analyzed, but not shown here").arg(display.size() - shown);
        sequence.chips.push_back(std::move(more));
    }
    return sequence;
}

}  // namespace

namespace {

QString name_of(const std::filesystem::path& path, const checkpoint::Checkpoint& file) {
    constexpr std::size_t kLongest = 60;
    const std::string title = model_title(path, file);
    return QString::fromStdString(escaped(title.empty() ? file.display_name() : title, kLongest));
}

bool has_recurrent_site(const model::Inspection& inspection) {
    return std::any_of(inspection.sites.begin(), inspection.sites.end(),
                       [](const Site& site) { return site.has_implicit; });
}

/// Shapes, histograms and norms need no configuration: opens a checkpoint that cannot be run for these alone.
void open_as_tensors(OpenModel& open, const QString& why) {
    widgets::ModelCard& card = open.card;
    card.tensors_only = true;
    for (const auto& [name, info] : open.file->tensors()) card.parameters += info.elements;
    card.note = why;
}

/// Everything that runs need. Throws Error where this program cannot run it.
void open_as_model(OpenModel& open) {
    widgets::ModelCard& card = open.card;
    open.inspection = model::inspect(*open.file);
    const auto& config = open.inspection.config;
    card.family = QString::fromStdString(config.family);
    card.parameters = open.inspection.parameters;
    card.layers = config.all_layers();
    card.heads = config.heads;
    card.key_value_heads = config.key_value_heads;
    card.max_positions = config.max_positions;
    card.vocabulary = config.vocabulary;
    card.causal = config.causal;
    card.encoder_decoder = config.encoder != nullptr;
    card.head = open.inspection.has_head || open.inspection.has_classes;
    card.experts = config.experts > 0;
    card.recurrent = has_recurrent_site(open.inspection);
    card.memory = config.positions == model::PositionKind::relative;
    QStringList notes;
    if (!open.inspection.report.left_over.empty())
        notes << QObject::tr("%1 tensors left over").arg(open.inspection.report.left_over.size());
    for (const auto& note : open.inspection.report.notes) notes << QString::fromStdString(escaped(note));
    for (const auto& note : open.file->notes()) notes << QString::fromStdString(note);
    card.note = notes.join(QLatin1Char('\n'));
}

/// A broken tokenizer or template is not fatal: the weights open, and the text panel shows the problem.
void open_texts(OpenModel& open) {
    try {
        open.tokenizer = shared_tokenizer_of(*open.file);
    } catch (const Error& error) {
        open.tokenizer_problem = error.what();
    }
    try {
        open.chat = chat_template_of(*open.file);
    } catch (const Error& error) {
        open.card.note += (open.card.note.isEmpty() ? QString() : QStringLiteral("\n")) +
                          QObject::tr("chat template: %1").arg(QString::fromUtf8(error.what()));
    }
    open.card.tokenizer = open.tokenizer != nullptr;
    open.card.chat_template = open.chat.has_value();
}

}  // namespace

QString listed_word(const tokenizer::Tokenizer& tokenizer, std::int32_t token) {
    return QString::fromStdString(figures::visible_token(tokenizer.surface(token), kMostOfWord));
}

std::shared_ptr<OpenModel> open_checkpoint(const QString& text) {
    auto open = std::make_shared<OpenModel>();
    const ModelPlace place = ModelPlace::of(text);
    const std::filesystem::path path = place.path.toStdString();
    open->file = model::open_checkpoint(path, place.adapter.toStdString());
    open->card.path = text;
    open->card.name = name_of(path, *open->file);
    if (!open->file->has_config()) {
        const auto special = checkpoint::special_weights(*open->file);
        const QString why =
            special ? QString::fromStdString("[" + special->where + "] " + special->expected + "; " + special->found) +
                          QLatin1Char('\n')
                    : QString();
        open_as_tensors(
            *open,
            why + QObject::tr("The checkpoint has no config.json, so it cannot be run. You can look at its tensors."));
        return open;
    }
    try {
        open_as_model(*open);
    } catch (const Error& error) {
        const QString what = QString::fromUtf8(error.what());
        widgets::ModelCard bare;
        bare.path = open->card.path;
        bare.name = open->card.name;
        open->card = bare;
        open->inspection = {};
        open_as_tensors(*open, QObject::tr("This model cannot be run: %1. You can look at its tensors.").arg(what));
        return open;
    }
    open_texts(*open);
    return open;
}

analysis::Input read_choice(const OpenModel& model, const TextChoice& choice, const std::filesystem::path& resources,
                            const Cancellation& cancellation) {
    if (choice.tokens) {
        analysis::Input given;
        given.sequences = *choice.tokens;
        given.first_token = "as given";
        return given;
    }
    analysis::InputOptions options = analysis::input_options(job_of(model, choice), job_model(model));
    options.resources = resources;
    if (choice.chat) options.chat = model.chat;
    if (!model.tokenizer && !model.tokenizer_problem.empty())
        throw Error(ErrorCode::unsupported, model.file->display_name(), "expected a tokenizer that can be read",
                    "found " + model.tokenizer_problem);
    if (!model.tokenizer)
        throw Error(ErrorCode::unsupported, model.file->display_name(),
                    "expected a tokenizer beside the weights (tokenizer.json, vocab.json, vocab.txt or a sentencepiece "
                    "model)",
                    "found none");
    return analysis::read_input(options, model.tokenizer.get(), &cancellation);
}

analysis::AnalysisRequest make_request(const OpenModel& model, const TextChoice& choice, analysis::Input& input,
                                       const Cancellation& cancellation) {
    auto request = analysis::make_request(job_of(model, choice), job_model(model), input, cancellation);
    request.model_name = model_title(model.file->path(), *model.file);
    if (model.inspection.config.encoder && choice.target_tokens) request.targets = *choice.target_tokens;
    request.record.logits &= model.card.head;
    request.record.experts &= model.inspection.config.experts > 0;
    request.record.implicit &= has_recurrent_site(model.inspection);
    request.record.branches &= analysis::type_chunk(model.inspection.sites) > 0;
    if (!choice.interventions.toml.isEmpty())
        request.settings_json =
            analysis::with_interventions(request.settings_json, choice.interventions.toml.toStdString());
    return request;
}

void take_settings(const std::string& settings_json, TextChoice& choice) {
    const nlohmann::json settings = nlohmann::json::parse(settings_json, nullptr, false);
    const analysis::AnalysisJob job = analysis::job_of(settings);
    if (!job.skip.empty())
        throw Error(ErrorCode::unsupported, "--skip", "expected an analysis of all blocks",
                    "found one without " + escaped(job.skip) + ": headscope analyze runs it again");
    if (job.dtype != "float32")
        throw Error(ErrorCode::unsupported, "--dtype", "expected an analysis computed in float32",
                    "found " + job.dtype + ": headscope analyze runs it again");
    choice.labels = QString::fromStdString(job.labels);
    choice.beyond_positions = job.beyond_positions;
    choice.segment = job.segment;
    choice.memory = job.memory;
    choice.switch_off = QString::fromStdString(job.switch_off);
    choice.mean = job.switch_off_how == "mean";
    choice.interventions = {};
    if (const auto toml = settings.find("interventions"); toml != settings.end() && toml->is_string())
        choice.interventions = {QString::fromStdString(toml->get<std::string>()),
                                QString::fromStdString(job.interventions)};
}

ask::InterventionPlan read_interventions(const OpenModel& model, const TextChoice& choice) {
    const std::filesystem::path place = choice.interventions.place.toStdString();
    if (choice.interventions.toml.isEmpty()) return {};
    return ask::parse_interventions(choice.interventions.toml.toStdString(),
                                    place.empty() ? "interventions" : place.filename().string(), place.parent_path(),
                                    {model.inspection.config, model.inspection.sites, model.tokenizer.get()});
}

std::int64_t uncut_tokens(const OpenModel& model, const TextChoice& choice, const analysis::AnalysisRequest& request,
                          const std::filesystem::path& resources, const Cancellation& cancellation) {
    const std::int64_t most = model.inspection.config.max_positions;
    const bool cut = choice.length == 0 && length_of(model, choice) > 0 &&
                     std::any_of(request.sequences.begin(), request.sequences.end(),
                                 [most](const auto& one) { return std::ssize(one.ids) == most; });
    if (!cut) return 0;
    TextChoice whole = choice;
    whole.whole = true;
    std::int64_t longest = 0;
    for (const auto& sequence : read_choice(model, whole, resources, cancellation).sequences)
        longest = std::max<std::int64_t>(longest, std::ssize(sequence.ids));
    return longest > most ? longest : 0;
}

widgets::TokenPreview make_preview(const OpenModel& model, const TextChoice& choice,
                                   const analysis::AnalysisRequest& request, const std::string& first_token,
                                   const analysis::Rate& rate, bool loaded) {
    widgets::TokenPreview preview;
    std::int64_t room = kMostChips;
    for (const auto& sequence : request.sequences) {
        preview.sequences.push_back(chips_of(sequence, room));
        room -= std::min(room, preview.sequences.back().tokens);
    }
    preview.first_token = QString::fromStdString(first_token.empty() ? "as given" : first_token);
    const auto& config = model.inspection.config;
    for (const auto& sequence : request.sequences)
        if (config.max_positions > 0 && static_cast<std::int64_t>(sequence.ids.size()) > config.max_positions)
            preview.beyond = true;
    try {
        analysis::check_request(model.inspection, request);
    } catch (const Error& error) {
        preview.failure = QString::fromUtf8(error.what());
        if (preview.beyond && !choice.beyond_positions)
            preview.failure = QObject::tr("%1. Set Length, tick “as windows”%2.")
                                  .arg(preview.failure, config.positions_are_a_table
                                                            ? QString()
                                                            : QObject::tr(", or tick “Beyond trained positions”"));
    }
    analysis::EstimateOptions options;
    options.rate = rate;
    options.weights_there = loaded;
    options.residence = model.residence;
    analysis::AnalysisRequest fitted = request;
    try {
        fitted.batch_tokens = analysis::fitting_batch_tokens(model.inspection, request, {.weights_there = loaded});
        if (!loaded) options.residence = analysis::expect_memory(model.inspection, fitted, {});
    } catch (const Error& error) {
        if (preview.failure.isEmpty()) preview.failure = QString::fromUtf8(error.what());
    }
    const analysis::Estimate cost = analysis::estimate(model.inspection, fitted, options);
    preview.seconds = cost.seconds;
    preview.memory = cost.memory_bytes;
    preview.file = cost.file_bytes;
    preview.spilled = cost.spilled_bytes;
    return preview;
}

}  // namespace headscope::app

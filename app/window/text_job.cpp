// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/text_job.h"

#include <algorithm>

#include "app/commands/loading.h"
#include "app/window/files/model_place.h"
#include "core/analysis/settings.h"
#include "core/analysis/switched_heads.h"
#include "core/analysis/targets.h"
#include "core/analysis/work_plan.h"
#include "core/base/error.h"
#include "core/checkpoint/adapter.h"
#include "core/checkpoint/special_weights.h"
#include "core/model/open_checkpoint.h"
#include "core/model/towers/check_batch.h"
#include "core/training/job/job_name.h"
#include "core/workspace/token_display.h"

namespace headscope::app {
namespace {

/// Of all sequences of a preview: the window takes them over, and frees them, in one go.
constexpr std::int64_t kMostChips = 60'000;

using widgets::TextChoice;
using widgets::TextSource;

const char* name_of(TextChoice::First first) {
    return first == TextChoice::First::yes ? "yes" : first == TextChoice::First::no ? "no" : "auto";
}

/// The length that a text is cut to; 0: none.
std::int64_t length_of(const OpenModel& model, const TextChoice& choice) {
    if (choice.length > 0 || choice.whole || choice.beyond_positions) return choice.length;
    return model.inspection.config.max_positions;
}

std::string settings_of(const OpenModel& model, const TextChoice& choice, const analysis::Input& input) {
    analysis::Settings settings;
    settings.model = model.file->path().string();
    settings.adapter = model.file->adapter();
    for (const TextSource& source : choice.sources) {
        if (!source.used) continue;
        if (source.kind == TextSource::Kind::text)
            ++settings.texts;
        else
            (source.kind == TextSource::Kind::file ? settings.files : settings.examples)
                .push_back(source.value.toStdString());
    }
    settings.targets = choice.target.isEmpty() ? 0 : 1;
    settings.pairs = choice.pair.isEmpty() ? 0 : 1;
    if (choice.maps) settings.record.emplace_back("maps");
    if (choice.states) settings.record.emplace_back("states");
    if (choice.logits) settings.record.emplace_back("logits");
    if (choice.experts) settings.record.emplace_back("experts");
    if (choice.norms) settings.record.emplace_back("norms");
    if (choice.implicit) settings.record.emplace_back("implicit");
    if (choice.branches) settings.record.emplace_back("branch-weights");
    settings.threads = compute_threads();
    settings.bos = name_of(choice.first);
    settings.length = choice.tokens ? choice.length : length_of(model, choice);
    settings.windows = choice.windows;
    settings.chat = choice.chat;
    settings.switch_off = choice.switch_off.toStdString();
    settings.switch_off_how = choice.mean ? "mean" : "zero";
    settings.repeat_token = choice.repeat_token;
    settings.beyond_positions = choice.beyond_positions;
    settings.segments = {choice.segment, choice.memory};
    return settings.json(input);
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
    std::string title = training::snapshot_title(path);
    if (!title.empty() && file.adapter()) title += " + " + file.adapter()->display_name();
    return QString::fromStdString(escaped(title.empty() ? file.display_name() : title, kLongest));
}

bool has_recurrent_site(const model::Inspection& inspection) {
    return std::any_of(inspection.sites.begin(), inspection.sites.end(),
                       [](const Site& site) { return site.has_implicit; });
}

/// What cannot be run can be looked at: shapes, histograms and norms need no configuration.
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

/// A tokenizer or template that cannot be read keeps nobody from the weights: the text panel says it.
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
    analysis::InputOptions options;
    for (const TextSource& source : choice.sources) {
        if (!source.used) continue;
        const std::string value = source.value.toStdString();
        if (source.kind == TextSource::Kind::file)
            options.files.emplace_back(value);
        else if (source.kind == TextSource::Kind::example)
            options.examples.push_back(value);
        else if (!value.empty())
            options.texts.push_back(value);
    }
    if (!choice.pair.isEmpty()) options.pairs.push_back(choice.pair.toStdString());
    options.resources = resources;
    if (choice.chat) options.chat = model.chat;
    options.first_token = choice.first == TextChoice::First::yes  ? analysis::FirstToken::yes
                          : choice.first == TextChoice::First::no ? analysis::FirstToken::no
                                                                  : analysis::FirstToken::automatic;
    options.length = length_of(model, choice);
    options.windows = choice.windows;
    options.repeat_token = choice.repeat_token;
    options.vocabulary = model.inspection.config.source_vocabulary();
    if (model.tokenizer) options.first_token_id = analysis::beginning_token(*model.file, *model.tokenizer);
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
    const auto& config = model.inspection.config;
    analysis::AnalysisRequest request;
    request.settings_json = settings_of(model, choice, input);
    request.model_name = training::snapshot_title(model.file->path());
    if (!request.model_name.empty() && model.file->adapter())
        request.model_name += " + " + model.file->adapter()->display_name();
    request.sequences = std::move(input.sequences);
    if (config.encoder && choice.target_tokens) {
        request.targets = *choice.target_tokens;
    } else if (config.encoder) {
        analysis::TargetOptions target;
        if (!choice.target.isEmpty()) target.texts.push_back(choice.target.toStdString());
        target.start = static_cast<std::int32_t>(config.decoder_start);
        target.vocabulary = config.ids();
        target.length = choice.windows ? 0 : length_of(model, choice);
        target.repeat_token = choice.repeat_token;
        request.targets =
            analysis::read_targets(target, request.sequences.size(), model.tokenizer.get(), &cancellation);
    }
    request.record.maps = choice.maps;
    request.record.states = choice.states;
    request.record.norms = choice.norms;
    request.record.logits = choice.logits && model.card.head;
    request.record.experts = choice.experts && config.experts > 0;
    request.record.implicit = choice.implicit && has_recurrent_site(model.inspection);
    request.record.branches = choice.branches && analysis::type_chunk(model.inspection.sites) > 0;
    request.beyond_positions = choice.beyond_positions;
    request.segments = {choice.segment, choice.memory};
    request.switched_off = analysis::parse_switched_off(
        choice.switch_off.toStdString(), choice.mean ? model::SwitchedOff::How::mean : model::SwitchedOff::How::zero,
        model.inspection.sites);
    return request;
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
    const analysis::Estimate cost = analysis::estimate(model.inspection, request, options);
    preview.seconds = cost.seconds;
    preview.memory = cost.memory_bytes;
    preview.file = cost.file_bytes;
    return preview;
}

}  // namespace headscope::app

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/analysis_controller.h"

#include <QFileInfo>
#include <QJsonDocument>
#include <algorithm>

#include "app/commands/device.h"
#include "app/window/files/model_place.h"
#include "app/window/pages_controller.h"
#include "app/window/session/restoration.h"
#include "app/window/text_job.h"
#include "core/analysis/input.h"
#include "core/analysis/switched_heads.h"
#include "core/base/error.h"

namespace headscope::app {
namespace {

/// "3.1,4.cross.2", as on the command line.
QString names_of(const std::vector<widgets::RunRequest::Switch>& heads, const std::vector<Site>& sites) {
    QStringList names;
    for (const auto& one : heads) names << QString::fromStdString(analysis::head_name(one.site, one.head, sites));
    return names.join(QLatin1Char(','));
}

/// The settings that the analysis stores.
QJsonObject settings_of(const widgets::Study& study) {
    return QJsonDocument::fromJson(QByteArray::fromStdString(study.header().settings_json)).object();
}

/// ModelPlace::text() of the analyzed model; empty: the settings have none.
QString model_place_of(const QJsonObject& settings) {
    return ModelPlace{settings["model"].toString(), settings["adapter"]["path"].toString()}.text();
}

}  // namespace

AnalysisController::AnalysisController(Context& context, PagesController& pages)
    : context_(context), pages_(pages), interventions_(context) {
    build_actions();
    connect_panel();
    connect_engine();
    read_examples();
    find_devices();
    connect(&context_, &Context::updated, this, &AnalysisController::update);
    connect(&context_.desk, &widgets::Desk::studies_changed, this, &AnalysisController::give_spelling);
    connect(&context_.desk, &widgets::Desk::run_wanted, this, &AnalysisController::run_again);
    connect(&context_.desk.evaluations(), &widgets::EvaluationShelf::analyse_wanted, this,
            &AnalysisController::analyze_item);
}

void AnalysisController::build_actions() {
    Actions& actions = context_.actions;
    actions.add("run", tr("&Run"), QKeySequence(tr("Ctrl+Return")), tr("Analyze the chosen texts"),
                [this] { run(context_.text->choice()); });
    actions.add("stop", tr("&Stop"), QKeySequence(tr("Ctrl+.")), tr("What is done stays"),
                [this] { context_.engine.stop(); });
}

void AnalysisController::connect_panel() {
    widgets::TextPanel* text = context_.text;
    connect(text, &widgets::TextPanel::preview_wanted, &context_.engine, &Engine::preview);
    connect(text, &widgets::TextPanel::refused, &context_, &Context::problem);
    connect(text, &widgets::TextPanel::run_wanted, this, &AnalysisController::run);
    connect(text, &widgets::TextPanel::stop_wanted, &context_.engine, &Engine::stop);
    connect(text, &widgets::TextPanel::changed, this, [this] {
        context_.tree->set_texts(context_.text->labels());
        Q_EMIT context_.changed();
    });
    connect(&context_.engine, &Engine::previewed, text, &widgets::TextPanel::show_preview);
    connect(&context_.engine, &Engine::progressed, text, &widgets::TextPanel::show_progress);
    connect(context_.tree, &widgets::ProjectTree::model_chosen, text, &widgets::TextPanel::begin_with_model);
    connect(context_.tree, &widgets::ProjectTree::model_close_wanted, &context_.engine, &Engine::close_model);
}

void AnalysisController::connect_engine() {
    Engine& engine = context_.engine;
    connect(&engine, &Engine::models_changed, this, &AnalysisController::give_spelling);
    connect(&engine, &Engine::run_began, this, &AnalysisController::began);
    connect(&engine, &Engine::run_ended, this, &AnalysisController::ended);
    connect(&engine, &Engine::site_done, this, [this](qint64 sequence, qint64 site) {
        if (widgets::Study* running = study())
            running->tell_site_done(sequence, site);
        else
            early_sites_.emplace_back(sequence, site);
    });
    connect(&engine, &Engine::loss_done, this, [this](qint64 sequence) {
        if (widgets::Study* running = study()) running->tell_loss_done(sequence);
    });
}

void AnalysisController::read_examples() {
    context_.text->set_examples({});
    context_.disk.post(
        this, [this, folder = context_.engine.resources(), send = mailbox_.sender()](const Cancellation&) {
            std::vector<widgets::TextExample> examples;
            QString message;
            try {
                for (const auto& name : analysis::bundled_texts(folder))
                    examples.push_back(
                        {QString::fromStdString(name), QString::fromStdString(analysis::bundled_text(folder, name))});
            } catch (const Error& error) {
                message = QString::fromUtf8(error.what());
            }
            send([this, examples, message] {
                context_.text->set_examples(examples);
                if (!message.isEmpty()) context_.problem(message);
            });
        });
}

void AnalysisController::find_devices() {
    gpus_.post(this, [this, send = mailbox_.sender()](const Cancellation&) {
        std::vector<widgets::DeviceCard> cards;
        for (const ListedGpu& gpu : list_gpus())
            cards.push_back({QString::fromStdString(gpu.choice), QString::fromStdString(gpu.device.name),
                             gpu.device.free_memory, QString::fromStdString(gpu.problem)});
        send([this, cards] {
            context_.text->set_devices(cards);
            context_.devices = cards;
            Q_EMIT context_.devices_listed();
        });
    });
}

void AnalysisController::update() {
    context_.actions.enable("run", !context_.engine.running() && !context_.engine.models().empty());
    context_.actions.enable("stop", context_.engine.running());
}

QString AnalysisController::work() const {
    if (!context_.engine.running()) return {};
    const widgets::Study* running = study();
    return tr("The analysis %1 is running. It stops; the layers that are done stay in a partial file, which the "
              "next start offers.")
        .arg(running ? running->name() : tr("of the chosen text"));
}

void AnalysisController::run(const widgets::TextChoice& choice) {
    if (context_.engine.running()) return context_.problem(tr("A run is going on: stop it first"));
    if (choice.model == 0) return context_.problem(tr("Open a checkpoint first"));
    for (const auto& card : context_.engine.models())
        if (card.id == choice.model && card.tensors_only) return context_.problem(card.note);
    choice_ = choice;
    study_ = 0;
    early_sites_.clear();
    context_.engine.run(choice, context_.folder / "analyses");
    context_.text->show_running(context_.engine.running());
    context_.text->show_progress(0, tr("starting"));
    Q_EMIT context_.updated();
}

void AnalysisController::run_with(Waiting waiting, const QString& message) {
    if (const int open = context_.engine.model_at(waiting.path); open != 0) return waiting.run(open);
    context_.report(message);
    const QString path = waiting.path;
    waiting_ = std::move(waiting);
    context_.engine.open_model(path);
}

void AnalysisController::model_opened(int id) {
    if (!waiting_ || context_.engine.model_at(waiting_->path) != id) return;
    const Waiting ready = *std::exchange(waiting_, std::nullopt);
    ready.run(id);
}

void AnalysisController::model_failed(const QString& path) {
    if (waiting_ && is_same_path(waiting_->path, path)) waiting_.reset();
}

void AnalysisController::run_again(const widgets::RunRequest& wish) {
    const widgets::Study* study = context_.desk.study(wish.study);
    if (!study) return;
    const QJsonObject settings = settings_of(*study);
    const QString path = model_place_of(settings);
    const int model = context_.engine.model_at(path);
    if (model == 0 && path.isEmpty())
        return context_.problem(
            tr("[%1] expected the path of the checkpoint among its settings; found none").arg(study->name()));
    if (model == 0)
        return run_with({path, true, [this, wish](int) { run_again(wish); }}, tr("Opening %1 for the run").arg(path));
    widgets::TextChoice choice;
    choice.model = model;
    // Shares the study's tokens: a text may have millions.
    using Tokens = std::shared_ptr<const std::vector<store::SequenceTokens>>;
    const widgets::Study::Header& header = study->shared_header();
    choice.tokens = Tokens(header, &header->sequences);
    if (const auto target = header->streams.find("target"); target != header->streams.end())
        choice.target_tokens = Tokens(header, &target->second);
    try {
        take_settings(study->header().settings_json, choice);
    } catch (const Error& error) {
        return context_.problem(QString::fromUtf8(error.what()));
    }
    choice.device = context_.text->choice().device;
    const store::RecordLevels& record = study->header().record;
    choice.maps = record.maps || wish.maps;
    choice.norms = record.norms || wish.norms;
    choice.states = record.states || wish.states;
    choice.logits = record.logits || wish.logits;
    choice.experts = record.experts || wish.experts;
    choice.implicit = record.implicit || wish.implicit;
    choice.branches = record.branches || wish.branches;
    if (!wish.switched_off.empty()) {
        choice.switch_off = names_of(wish.switched_off, study->sites());
        choice.mean = wish.switched_off.front().mean;
    }
    run(choice);
}

void AnalysisController::run_snapshot(const std::filesystem::path& checkpoint, const QString& title) {
    if (context_.engine.running()) return context_.problem(tr("A run is going on: stop it first"));
    context_.report(tr("Opening %1").arg(title));
    const QString path = QString::fromStdString(checkpoint.string());
    waiting_ = Waiting{path, true, [this](int model) { run_text(model); }};
    context_.engine.open_model(path);
}

void AnalysisController::run_text(int model) {
    widgets::TextChoice choice = context_.text->choice();
    const bool nothing = std::none_of(choice.sources.begin(), choice.sources.end(),
                                      [](const auto& source) { return source.used && !source.value.isEmpty(); });
    if (nothing) choice.sources.assign(1, {widgets::TextSource::Kind::example, QStringLiteral("lantern")});
    std::int64_t positions = 0;
    for (const auto& card : context_.engine.models())
        if (card.id == model) positions = card.max_positions;
    // Small models were trained on short texts, and a text is long in bytes: cut it to what they read.
    constexpr std::int64_t kLength = 256;
    std::int64_t most = nothing ? kLength : choice.beyond_positions ? 0 : positions;
    if (nothing && positions > 0) most = std::min(most, positions);
    if (most > 0 && (choice.length > most || (nothing && choice.length == 0))) choice.length = most;
    context_.text->set_choice(choice);
    choice.model = model;
    show_run(choice);
}

void AnalysisController::show_run(const widgets::TextChoice& choice) {
    run(choice);
    pages_.show_page(context_.desk.studies().empty() ? PagesController::Page::start : PagesController::Page::analysis);
}

void AnalysisController::analyze_item(const widgets::ItemAnalysis& item) {
    if (context_.engine.running()) return context_.problem(tr("An analysis is running: stop it first"));
    context_.ask_disk(item.model, [this, item, send = mailbox_.sender()] {
        const QFileInfo place(item.model);
        widgets::ItemAnalysis found = item;
        found.model = place.absoluteFilePath();
        send([this, found, exists = place.exists()] {
            if (!exists)
                return context_.problem(tr("[%1] expected the checkpoint that was evaluated on %2; found nothing")
                                            .arg(found.model, found.what));
            run_with({ModelPlace{found.model, found.adapter}.text(), false,
                      [this, found](int model) { run_item(model, found); }},
                     tr("Opening %1 for %2").arg(found.model, found.what));
        });
    });
}

/// The text panel keeps its texts; its record levels apply.
void AnalysisController::run_item(int model, const widgets::ItemAnalysis& item) {
    context_.text->choose_model(model);
    widgets::TextChoice choice = context_.text->choice();
    choice.model = model;
    choice.pair.clear();
    choice.target.clear();
    choice.first = widgets::TextChoice::First::automatic;
    choice.chat = choice.repeat_token = choice.windows = false;
    choice.length = 0;
    choice.whole = true;  // an answer that is cut off is no answer
    bool two_towers = false;
    for (const auto& card : context_.engine.models())
        if (card.id == model) two_towers = card.encoder_decoder;
    const QString text = two_towers ? item.context : item.context + item.continuation;
    if (two_towers) choice.target = item.continuation;
    choice.sources.assign(1, {widgets::TextSource::Kind::text, text});
    show_run(choice);
}

/// Spells the tokens of analyses whose model is open.
void AnalysisController::give_spelling() {
    for (widgets::Study* study : context_.desk.studies())
        if (!study->spell)
            study->spell = context_.engine.speller(context_.engine.model_at(model_place_of(settings_of(*study))));
}

void AnalysisController::show_changes() {
    if (!choice_ || choice_->switch_off.isEmpty()) return;
    widgets::View* compare = pages_.views().at(QStringLiteral("compare"));
    QJsonObject state = compare->state();
    state["mode"] = QStringLiteral("heads");
    compare->restore(state);
    pages_.show_view(QStringLiteral("compare"));
}

void AnalysisController::began(const QString& partial) {
    coming_file_ = partial;
    context_.opener.open(partial, true);
}

AnalysisController::Part AnalysisController::take(widgets::Study* study) {
    if (coming_file_.isEmpty() || QString::fromStdString(study->path().string()) != coming_file_) return Part::none;
    coming_file_.clear();
    for (const auto& [sequence, site] : early_sites_) study->tell_site_done(sequence, site);
    early_sites_.clear();
    if (!context_.engine.running()) return Part::ended;
    study_ = study->id();
    study->set_running();
    context_.desk.select_study(study_);
    return Part::running;
}

void AnalysisController::file_failed(const QString& path) {
    if (path == coming_file_) coming_file_.clear();
}

void AnalysisController::ended(const QString& output, const QString& message) {
    context_.text->show_running(false);
    widgets::Study* study = this->study();
    if (!output.isEmpty()) {
        if (study) {
            study->tell_complete(output.toStdString());
        } else {
            // The partial file has another name now, or is still being read under its old one.
            context_.opener.give_up(coming_file_);
            coming_file_ = output;
            context_.opener.open(output, true);
        }
        context_.report(tr("Done: %1").arg(output));
        if (study) {
            Q_EMIT completed(study);
            show_changes();
        }
    } else {
        if (study) study->tell_stopped();
        message.isEmpty() ? context_.report(tr("Stopped; what was done stays")) : context_.problem(message);
    }
    study_ = 0;
    Q_EMIT context_.updated();
    Q_EMIT context_.changed();
}

}  // namespace headscope::app

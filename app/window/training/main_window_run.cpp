// SPDX-License-Identifier: GPL-3.0-or-later
// Runs from the window: begun by the text panel or a view, followed while they fill the desk.
#include <QFileInfo>
#include <QJsonDocument>

#include "app/window/files/model_place.h"
#include "app/window/main_window.h"
#include "core/analysis/switched_heads.h"
#include "widgets/panels/text_panel.h"
#include "widgets/training/facts.h"

namespace headscope::app {

namespace {

/// "3.1,4.cross.2", as the command line has it.
QString names_of(const std::vector<widgets::RunWish::Switch>& heads, const std::vector<Site>& sites) {
    QStringList names;
    for (const auto& one : heads) names << QString::fromStdString(analysis::head_name(one.site, one.head, sites));
    return names.join(QLatin1Char(','));
}

/// What the analysis was asked for, as it stores it.
QJsonObject settings_of(const widgets::Study& study) {
    return QJsonDocument::fromJson(QByteArray::fromStdString(study.header().settings_json)).object();
}

/// The place that the window knows the analysed model by; empty where it is not told.
QString model_place_of(const QJsonObject& settings) {
    return ModelPlace{settings["model"].toString(), settings["adapter"]["path"].toString()}.text();
}

}  // namespace

void MainWindow::run(const widgets::TextChoice& choice) {
    if (engine_.running()) {
        problem(tr("A run is going on: stop it first"));
        return;
    }
    if (choice.model == 0) {
        problem(tr("Open a checkpoint first"));
        return;
    }
    for (const auto& card : engine_.models()) {
        if (card.id != choice.model || !card.tensors_only) continue;
        problem(card.note);
        return;
    }
    run_choice_ = choice;
    running_study_ = 0;
    early_sites_.clear();
    engine_.run(choice, data_ / "analyses");
    text_->show_running(engine_.running());
    text_->show_progress(0, tr("starting"));
    update_actions();
}

void MainWindow::run_again(const widgets::RunWish& wish) {
    const widgets::Study* study = desk_.study(wish.study);
    if (!study) return;
    const QJsonObject settings = settings_of(*study);
    const QString path = model_place_of(settings);
    const int model = engine_.model_at(path);
    if (model == 0) {
        // Its checkpoint first; then this again.
        if (path.isEmpty()) {
            problem(tr("[%1] expected the path of the checkpoint among its settings; found none").arg(study->name()));
            return;
        }
        waiting_wish_ = wish;
        tell(tr("Opening %1 for the run").arg(path));
        engine_.open_model(path);
        return;
    }
    widgets::TextChoice choice;
    choice.model = model;
    // A part of what the study holds: a text may have millions of tokens.
    using Tokens = std::shared_ptr<const std::vector<store::SequenceTokens>>;
    const widgets::Study::Header& header = study->shared_header();
    choice.tokens = Tokens(header, &header->sequences);
    if (const auto target = header->streams.find("target"); target != header->streams.end())
        choice.target_tokens = Tokens(header, &target->second);
    choice.beyond_positions = settings["beyond_positions"].toBool();
    const store::RecordLevels& record = study->header().record;
    choice.maps = record.maps || wish.maps;
    choice.norms = record.norms || wish.norms;
    choice.states = record.states || wish.states;
    choice.logits = record.logits || wish.logits;
    choice.experts = record.experts || wish.experts;
    choice.implicit = record.implicit || wish.implicit;
    choice.branches = record.branches || wish.branches;
    choice.switch_off = settings["switch_off"].toString();
    choice.mean = settings["switch_off_how"].toString() == QLatin1String("mean");
    if (!wish.switched_off.empty()) {
        choice.switch_off = names_of(wish.switched_off, study->sites());
        choice.mean = wish.switched_off.front().mean;
    }
    run(choice);
}

void MainWindow::give_spelling() {
    for (widgets::Study* study : desk_.studies())
        if (!study->spell) study->spell = engine_.speller(engine_.model_at(model_place_of(settings_of(*study))));
}

void MainWindow::show_changes() {
    widgets::View* compare = views_.at(QStringLiteral("compare"));
    QJsonObject state = compare->state();
    state["mode"] = QStringLiteral("heads");
    compare->restore(state);
    show_view(QStringLiteral("compare"));
}

void MainWindow::began(const QString& partial) {
    run_file_ = partial;
    opener_.open(partial, true);
}

/// The partial file has another name now, or is still being read under its old one: it is not waited for.
void MainWindow::open_finished(const QString& output) {
    opener_.give_up(run_file_);
    run_file_ = output;
    opener_.open(output, true);
}

void MainWindow::ended(const QString& output, const QString& message) {
    text_->show_running(false);
    widgets::Study* study = desk_.study(running_study_);
    if (!output.isEmpty()) {
        if (study)
            study->tell_complete(output.toStdString());
        else
            open_finished(output);
        tell(tr("Done: %1").arg(output));
        if (study) {
            remember(*study);
            picture_recent(study);
            if (run_choice_ && !run_choice_->switch_off.isEmpty()) show_changes();
        }
    } else if (!message.isEmpty()) {
        if (study) study->tell_stopped();
        problem(message);
    } else {
        if (study) study->tell_stopped();
        tell(tr("Stopped; what was done stays"));
    }
    running_study_ = 0;
    update_actions();
    save_soon();
}

}  // namespace headscope::app

// SPDX-License-Identifier: GPL-3.0-or-later
// Runs from the window: begun by the text panel or a view, followed while they fill the desk.
#include <QFileInfo>

#include "app/window/main_window.h"
#include "widgets/panels/text_panel.h"

namespace headscope::app {

void MainWindow::run(const widgets::TextChoice& choice, const std::vector<widgets::RunWish::Switch>& switched_off) {
    if (engine_.running()) {
        problem(tr("A run is going on: stop it first"));
        return;
    }
    if (choice.model == 0) {
        problem(tr("Open a checkpoint first"));
        return;
    }
    run_choice_ = choice;
    running_study_ = 0;
    engine_.run(choice, switched_off, data_ / "analyses");
    text_->show_running(engine_.running());
    text_->show_progress(0, tr("beginning"));
    update_actions();
}

void MainWindow::run_again(const widgets::RunWish& wish) {
    const auto place = choices_.find(wish.study);
    widgets::TextChoice choice;
    if (place != choices_.end()) {
        choice = place->second;
    } else if (const widgets::Study* study = desk_.study(wish.study)) {
        // An analysis from a file: its texts are in it, its model is the chosen one.
        choice = text_->choice();
        choice.sources.clear();
        for (std::int64_t s = 0; s < study->sequences(); ++s)
            choice.sources.push_back(
                {widgets::TextSource::Kind::text, QString::fromStdString(study->tokens("tokens", s).text)});
        if (choice.model == 0) {
            problem(tr("Open the checkpoint of %1 first, then run again").arg(study->model_name()));
            return;
        }
    }
    choice.maps = choice.maps || wish.maps;
    choice.states = choice.states || wish.states;
    choice.logits = choice.logits || wish.logits;
    run(choice, wish.switched_off);
}

void MainWindow::began(const QString& partial) {
    opener_.open(partial, true);
}

void MainWindow::ended(const QString& output, const QString& message) {
    text_->show_running(false);
    widgets::Study* study = desk_.study(running_study_);
    if (!output.isEmpty()) {
        if (study)
            study->tell_complete(output.toStdString());
        else
            opener_.open(output, true);
        tell(tr("Done: %1").arg(output));
        if (study) {
            remember({output,
                      study->name(),
                      tr("%1, %2 sequences").arg(study->model_name()).arg(study->sequences()),
                      QStringLiteral("analysis"),
                      {}});
            picture_recent(study);
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

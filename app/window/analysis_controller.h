// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "app/window/asks/interventions_controller.h"
#include "app/window/context.h"
#include "core/base/process/worker.h"
#include "widgets/desk/evaluation_shelf.h"

namespace headscope::app {

class PagesController;

/// Runs analyses of texts: begun by the text panel, a view, a snapshot or an item of an evaluation, and followed while
/// they fill the desk.
class AnalysisController : public QObject {
    Q_OBJECT
public:
    AnalysisController(Context& context, PagesController& pages);

    void run(const widgets::TextChoice& choice);
    /// Analyzes the text panel's text with a checkpoint, which is opened first. `title` names it to people.
    void run_snapshot(const std::filesystem::path& checkpoint, const QString& title);

    widgets::Study* study() const { return context_.desk.study(study_); }  ///< that runs; null: none, or not open yet
    /// The file that is written, while it is not open yet; else empty.
    const QString& coming_file() const { return coming_file_; }
    QString work() const;  ///< the sentence that warns before the window closes; empty: no analysis runs

    // For the controller that opens files:
    enum class Part { none, running, ended };
    /// The part that an opened analysis has in the run. Follows a running one.
    Part take(widgets::Study* study);
    /// Brings the comparison of all heads to the front where the run switched heads off.
    void show_changes();
    void file_failed(const QString& path);
    /// A checkpoint is being opened for a run with a text of its own.
    bool waits_with_text() const { return waiting_ && waiting_->with_text; }
    void model_opened(int id);
    void model_failed(const QString& path);

Q_SIGNALS:
    void completed(headscope::widgets::Study* study);

private:
    /// A run that waits for its checkpoint.
    struct Waiting {
        QString path;
        bool with_text = false;
        std::function<void(int model)> run;
    };
    void build_actions();
    void connect_panel();
    void connect_engine();
    void read_examples();
    void find_devices();
    void update();
    /// Runs at once where the checkpoint is open.
    void run_with(Waiting waiting, const QString& message);
    void run_again(const widgets::RunRequest& wish);
    void run_text(int model);
    void analyze_item(const widgets::ItemAnalysis& item);
    void run_item(int model, const widgets::ItemAnalysis& item);
    void show_run(const widgets::TextChoice& choice);
    void give_spelling();
    void began(const QString& partial);
    void ended(const QString& output, const QString& message);

    Context& context_;
    PagesController& pages_;
    InterventionsController interventions_;
    std::optional<widgets::TextChoice> choice_;  ///< of the last run
    std::optional<Waiting> waiting_;
    int study_ = 0;  ///< that the run fills; 0: none
    QString coming_file_;
    std::vector<std::pair<qint64, qint64>> early_sites_;  ///< done before the file was open
    widgets::Mailbox mailbox_{this};
    Worker gpus_;  ///< drivers may take seconds to answer
};

}  // namespace headscope::app

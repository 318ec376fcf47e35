// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QJsonObject>
#include <QObject>

#include "app/window/context.h"
#include "app/window/adapter_controller.h"
#include "app/window/files/recent_items.h"

namespace headscope::app {

class AnalysisController;
class PagesController;

/// Opens whatever a path leads to, and keeps names of analyses, recent items and leftovers.
class FilesController : public QObject {
    Q_OBJECT
public:
    FilesController(Context& context, PagesController& pages, AnalysisController& analysis);

    void open(const QString& path);
    /// Brings an analysis to the front.
    void show(widgets::Study* study);
    /// Brings an open checkpoint to the front: the text panel, or its tensors where it cannot be run.
    void show_model(int model);
    void save_copy(int study);
    /// Shows a folder in the program that set_folder_program() named.
    void show_folder(const QString& path);
    void set_folder_program(const QString& program) { folder_program_ = program; }  ///< empty: shows none

    RecentItems& recent() { return recent_; }
    const RecentItems& recent() const { return recent_; }
    /// Names that the user gave to analyses, by path: of what is open, listed or coming.
    QJsonObject names() const;
    void set_names(const QJsonObject& names) { names_ = names; }
    /// Offers partial files of analyses that no process writes, but for those of the session.
    void look_for_leftovers(const QStringList& of_session);

Q_SIGNALS:
    // Paths that the user opened and others read:
    void run_found(const QString& path);
    void job_found(const QString& path);
    void text_found(const QString& path);

private:
    enum class Kind { model, analysis, run, job, text };
    static Kind kind_of(const QString& path);

    void build_actions();
    void update();
    void choose_model();
    void choose_analysis();
    void open_sample();
    void open_found(const QString& path, Kind kind, const AdapterFound& adapter);
    void opened_model(int id);
    void opened_study(widgets::Study* study);
    void settle_failed(const QString& path, const QString& message);
    void ask_name(int study);
    void give_name(widgets::Study* study);
    void offer_leftovers();
    void remove_leftover(const QString& path);

    Context& context_;
    PagesController& pages_;
    AnalysisController& analysis_;
    AdapterController adapters_;
    RecentItems recent_;
    QJsonObject names_;
    QStringList leftovers_;
    QString folder_program_ = QStringLiteral("xdg-open");
    Worker copier_;
    widgets::Mailbox mailbox_{this};
};

}  // namespace headscope::app

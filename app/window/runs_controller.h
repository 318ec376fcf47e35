// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

#include "app/window/context.h"
#include "app/window/pages/cost_service.h"
#include "app/window/training/run_service.h"

namespace headscope::app {

class AnalysisController;
class FilesController;
class PagesController;

/// Joins the views of training runs and of the job to the processes and folders.
class RunsController : public QObject {
    Q_OBJECT
public:
    RunsController(Context& context, PagesController& pages, FilesController& files, AnalysisController& analysis);

    RunService& service() { return service_; }
    const RunService& service() const { return service_; }
    void read_job(const QString& path);
    /// Adds a text file to the job's data.
    void train_on(const QString& path);
    QString status() const;       ///< of a run that starts or trains; empty: none does
    QStringList at_work() const;  ///< names of runs that train or start
    void stop_all();

private:
    void build_actions();
    void connect_shelf();
    void update();
    void opened(int run);
    void choose_run();
    void choose_job();
    void save_job();
    void analyze_snapshot(int run, const QString& snapshot);
    void offer_interrupted();

    Context& context_;
    PagesController& pages_;
    FilesController& files_;
    AnalysisController& analysis_;
    RunService service_;
    CostService costs_;
    QStringList interrupted_;  ///< folders of runs that can be resumed
    widgets::Mailbox mailbox_{this};
};

}  // namespace headscope::app

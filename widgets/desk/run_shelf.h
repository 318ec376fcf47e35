// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/process/worker.h"
#include "core/cost/cost_table.h"
#include "core/workspace/live_run.h"
#include "widgets/desk/job_draft.h"

namespace headscope::widgets {

/// An open run folder, as of its journal so far. Values are replaced as a whole while it grows.
struct Run {
    int id = 0;
    QString path, name;
    int colour = 0;     ///< of the theme's categorical ones
    bool shown = true;  ///< in plots that overlay runs
    std::shared_ptr<const workspace::LiveRun> record = std::make_shared<const workspace::LiveRun>();
    QString failure;      ///< the folder cannot be read
    QStringList waiting;  ///< requests that were written and not yet acknowledged
    workspace::RunStatus status() const { return record->status(); }
    bool alive() const { return status() == workspace::RunStatus::running || status() == workspace::RunStatus::paused; }
};

/// The shown moment of a run, beside the desk's selection.
struct RunMoment {
    int run = 0;                       ///< 0: none
    std::optional<std::int64_t> step;  ///< of a probe; empty: the last one
    bool operator==(const RunMoment&) const = default;
};

/// A view's request to measure mixers at some sizes; the service answers it.
struct CostRequest {
    QString preset;  ///< empty: the draft's model
    std::int64_t batch = 1;
    std::vector<std::int64_t> lengths;
    bool operator==(const CostRequest&) const = default;
};
struct CostAnswer {
    CostRequest wish;
    std::shared_ptr<const cost::CostTable> table;  ///< null: not yet, or it failed
    QString words;                                 ///< what is going on, or why it failed
    bool busy = false;
};

/// The runs that are open, the job that is being written, and what views want done with them. Window's thread.
class RunShelf : public QObject {
    Q_OBJECT
public:
    explicit RunShelf(QObject* parent = nullptr);
    ~RunShelf() override;

    JobDraft& draft() { return draft_; }
    /// Makes curves and pictures of records; tasks are short.
    Worker& worker() { return worker_; }

    /// Takes a folder in, or finds it; it becomes the chosen one. Its id.
    int add(const QString& path, const QString& name);
    void remove(int id);
    const std::vector<Run>& runs() const { return runs_; }
    const Run* run(int id) const;  ///< null: gone
    const Run* run_at(const QString& path) const;
    const Run* current() const { return run(moment_.run); }

    const RunMoment& moment() const { return moment_; }
    void choose(int run);
    void choose_step(std::optional<std::int64_t> step);
    /// The head that is looked at in runs; the desk's selection goes along where an analysis is open.
    std::int64_t site() const { return site_; }
    std::int64_t head() const { return head_; }
    void choose_head(std::int64_t site, std::int64_t head);
    void set_shown(int id, bool shown);

    // By the service that reads the folders.
    void take(int id, std::shared_ptr<const workspace::LiveRun> record);
    void fail(int id, const QString& failure);
    void set_waiting(int id, const QStringList& waiting);
    /// A job is being started: between the request and the first event.
    void set_starting(const QString& what);
    const CostAnswer& cost() const { return cost_; }
    void set_cost(CostAnswer answer);
    const QString& starting() const { return starting_; }

Q_SIGNALS:
    void runs_changed();   ///< one came, went, or is shown or not
    void updated(int id);  ///< its record, its failure or what waits
    void moment_changed();
    void head_changed();
    void starting_changed();
    void cost_changed();

    // Requests of views to the window.
    void start_wanted();
    void calibrate_wanted();
    void cost_wanted(const headscope::widgets::CostRequest& wish);
    void cost_unwanted();  ///< gives up what is being measured
    void control_wanted(int run, const QString& action, const QString& value);
    void resume_wanted(int run);
    /// A job that goes on from a snapshot, into the draft.
    void fork_wanted(int run, const QString& snapshot);
    void analyse_wanted(int run, const QString& snapshot);
    void open_wanted();      ///< asks for a folder
    void read_job_wanted();  ///< asks for a file, into the draft
    void save_job_wanted();
    void close_wanted(int run);
    void folder_wanted(int run);

private:
    Run* find(int id);

    JobDraft draft_;
    std::vector<Run> runs_;
    int last_id_ = 0;
    RunMoment moment_;
    std::int64_t site_ = 0, head_ = 0;
    QString starting_;
    CostAnswer cost_;
    Worker worker_;
};

/// "running", "interrupted", ... as words of the window.
QString status_words(workspace::RunStatus status);

}  // namespace headscope::widgets

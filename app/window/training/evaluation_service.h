// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QStringList>
#include <QTimer>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "core/base/process/worker.h"
#include "core/workspace/live_run.h"
#include "widgets/desk/desk.h"
#include "widgets/mailbox.h"

namespace headscope {
class Spawned;
}
namespace headscope::app {

/// A run that is to be evaluated.
struct EvaluatedRun {
    QString folder, name;
    std::shared_ptr<const workspace::LiveRun> record;
};

/// One `headscope evaluate`: runs that can be asked the same.
struct EvaluationPlan {
    QStringList folders, names;
    std::string tasks;          ///< on what the runs hold out, by their objective
    std::int64_t length = 0;    ///< tokens of the shortest training sequence among them
    QStringList words() const;  ///< of the command line, without -o
};
/// Runs of each objective, and of each generator, together; without those whose items lie in files. Throws Error for a
/// job that cannot be read.
std::deque<EvaluationPlan> evaluation_plans(const std::vector<EvaluatedRun>& runs);

/// Evaluates the best snapshots of the open runs, or what was chosen in a dialog, one `headscope evaluate` after the
/// other as a child at a low priority, into files of the user's folder.
class EvaluationService : public QObject {
    Q_OBJECT
public:
    EvaluationService(widgets::Desk* desk, std::string program, QObject* parent = nullptr);
    ~EvaluationService() override;
    void set_folder(const std::filesystem::path& folder) { folder_ = folder; }
    void evaluate();
    /// `words` of one command, without -o; `names` of its models.
    void evaluate(const QStringList& words, const QStringList& names);
    void stop();

Q_SIGNALS:
    void written(const QString& path);
    void failed(const QString& message);

private:
    /// The command of one process.
    struct Call {
        QStringList words, names;
        QString file_name;
    };
    using MakeCalls = std::function<std::deque<Call>()>;
    void begin(MakeCalls make);
    void next();
    void start(const Call& call, const QString& output);
    void ended(const QString& output);
    void end(const QString& problem = {});

    widgets::Desk* desk_;
    std::string program_;
    std::filesystem::path folder_;
    std::deque<Call> calls_;
    std::shared_ptr<Spawned> process_;
    QTimer look_;  ///< at the progress that the process prints
    bool busy_ = false, stopped_ = false;
    widgets::Mailbox mailbox_{this};
    Worker files_;
};

}  // namespace headscope::app

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QTimer>
#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/process/worker.h"
#include "widgets/desk/run_shelf.h"
#include "widgets/mailbox.h"

namespace headscope::app {

class FollowedRun;
struct Launch;

/// Joins the window to run folders and their training processes: reads journals while they grow, writes requests,
/// starts `headscope train`. Training processes are detached and survive the window. Every function is called on the
/// window's thread; workers touch files.
class RunService : public QObject {
    Q_OBJECT
public:
    RunService(widgets::RunShelf* shelf, std::string program, QObject* parent = nullptr);
    ~RunService() override;

    /// For the monkey test: one process at a time (a closed run of the user's folder is stopped), and only jobs whose
    /// estimate is at most `bytes`.
    void limit_starts(double bytes) { most_bytes_ = bytes; }
    /// The user's folder for runs that start here. Made when it is needed.
    void set_folder(const std::filesystem::path& folder) { folder_ = folder; }

    /// Attaches to a run's folder; one whose process has not begun yet is waited for.
    void open(const QString& folder);
    void close(int run);
    /// Emits found() with the folders of runs in the user's folder that died and are not open.
    void look_for_interrupted();

    /// Starts the draft's job in a new folder.
    void start();
    /// Trains the draft's job for about a second in a folder of its own, and reports its speed.
    void calibrate();
    void stop_calibrating();
    void resume(int run);
    void control(int run, const QString& action, const QString& value);
    /// The draft becomes the run's job, to go on from that snapshot.
    void fork(int run, const QString& snapshot);
    std::filesystem::path snapshot_folder(int run, const QString& snapshot) const;

    bool calibrating() const { return calibration_ != nullptr; }
    /// Folders of runs whose processes are there and have not begun (or gone on) yet: data may take minutes to make.
    QStringList starting() const;
    /// Asks those processes to end.
    void stop_starting();

Q_SIGNALS:
    void opened(int run);
    void failed(const QString& message);
    void not_opened(const QString& folder);  ///< after failed(), or it is waited for
    void starting_changed();                 ///< starting()
    void told(const QString& text);
    void found(const QStringList& folders);  ///< interrupted ones

private:
    struct Starting {
        std::shared_ptr<Launch> launch;  ///< the worker's
        QString folder;                  ///< empty: there is no process yet
        bool resume = false;
    };
    void estimate();
    bool may_start(bool draft) const;
    bool is_own(const QString& path) const;
    void poll();
    void read(const QString& folder, const std::shared_ptr<Launch>& begun = {});
    void mend(const std::filesystem::path& folder);
    void attach(const QString& folder, std::shared_ptr<FollowedRun> followed, const QString& name,
                const std::shared_ptr<const workspace::LiveRun>& record);
    void launch(std::shared_ptr<Launch> launch);
    void wait_for(std::shared_ptr<Launch> launch);
    void wait_at(const QString& folder, const std::shared_ptr<Launch>& launch);
    void end_starting(const std::shared_ptr<Launch>& launch);
    void tell_starting();
    void calibrated(double tokens_per_second, const QString& words);

    widgets::RunShelf* shelf_;
    std::string program_;
    std::filesystem::path folder_;
    std::map<int, std::shared_ptr<FollowedRun>> followed_;
    std::vector<Starting> starting_;
    QTimer poll_, estimate_soon_;
    bool polling_ = false;
    double most_bytes_ = 0;  ///< of limit_starts(); 0: any
    int turn_ = 0;
    std::map<std::string, double> speeds_;  ///< by speed_key()
    std::string calibrating_key_;
    std::shared_ptr<std::atomic<bool>> calibration_;  ///< true: given up
    widgets::Mailbox mailbox_{this};
    Worker files_, estimates_, measurements_;
    Worker looks_;          ///< what reads whole journals, while `files_` pauses, stops and polls
    const int wishes_ = 0;  ///< its address is their owner among the tasks of `files_`: they are written in any case
    const int mends_ = 0;   ///< and of those of `looks_` that make run.h5
};

/// True for a folder that holds a run; asks the disk.
bool looks_like_run(const QString& path);

}  // namespace headscope::app

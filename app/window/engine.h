// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Computes for the window: one thread owns LibTorch and the weights, another opens checkpoints and makes tokens.
// Every function is called on the window's thread, returns at once and answers by signals there.

#include <QObject>
#include <QTimer>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "app/window/training/run_progress.h"
#include "core/base/process/worker.h"
#include "core/base/progress.h"
#include "core/model/load/residence.h"
#include "widgets/desk/desk.h"
#include "widgets/mailbox.h"
#include "widgets/panels/text_choice.h"

namespace headscope::app {

struct OpenModel;

/// Work of a service with a model's weights. Everything is called on the compute thread; all but `report` and `ended`
/// may throw Error and Stopped.
struct ModelWork {
    std::string device = "cpu";
    std::function<void(const Cancellation&)> prepare{};   ///< before weights are read
    std::function<double(model::Residence)> bytes{};      ///< of weights and work, at most
    std::function<void(const Cancellation&)> run{};       ///< OpenModel::weights are there
    std::function<void(const QString& words)> report{};   ///< progress of reading weights
    std::function<void(const QString& failure)> ended{};  ///< empty: done, or stopped
};

class Engine : public QObject {
    Q_OBJECT
public:
    explicit Engine(int threads, QObject* parent = nullptr);
    ~Engine() override;  ///< stops what runs and waits for it

    /// Opens a path once, however often it is requested meanwhile. `of_session` opens on a thread of its own: a disk
    /// that does not answer delays other paths of the session only.
    void open_model(const QString& path, bool of_session = false);
    void close_model(int id);
    /// The id of an open model with that path; 0: none.
    int model_at(const QString& path) const;
    const std::vector<widgets::ModelCard>& models() const { return cards_; }
    /// For services with a thread of their own; null: it was closed.
    std::shared_ptr<const OpenModel> opened(int id) const { return find(id); }

    /// Computes the tokens and the cost of a choice. Replaces a request that still waits.
    void preview(const widgets::TextChoice& choice);
    /// Runs a choice into a new analysis file of `folder`. One run at a time.
    void run(const widgets::TextChoice& choice, const std::filesystem::path& folder);
    void stop();
    /// Does a service's work, behind what was posted before. `owner` stops it. A model that is not open ends it at
    /// once.
    void work_with(int model, const void* owner, ModelWork work);
    /// Stops the owner's work. Returns how many pieces of it had not begun: their `ended` is not called.
    std::size_t stop_work(const void* owner) { return compute_.cancel(owner); }
    /// Frees tensors where they were made.
    void let_go(std::shared_ptr<void> value) { compute_.let_go(std::move(value)); }
    /// Speed of this machine in multiplications a second, for estimates: a stored rate, or one measured in the
    /// background until a run begins. Runs and measurements emit rate_measured().
    void set_rate(double rate) { rate_ = rate; }
    void calibrate(const std::filesystem::path& folder);
    bool running() const { return running_; }

    /// How an open model's tokenizer spells an id; empty without one. May be called on any thread.
    std::function<QString(std::int32_t)> speller(int id) const;

    int threads() const { return threads_; }
    std::string resources() const { return resources_; }

Q_SIGNALS:
    void rate_measured(double rate);
    void models_changed();
    void model_opened(int id);
    void model_failed(const QString& path, const QString& message);
    void previewed(const headscope::widgets::TokenPreview& preview);

    void run_began(const QString& partial);  ///< the partial file can be opened
    void site_done(qint64 sequence, qint64 site);
    void loss_done(qint64 sequence);
    void progressed(double share, const QString& what);
    /// output: the finished file; empty: it failed (message) or was stopped (no message), `partial` may be there.
    void run_ended(const QString& output, const QString& message);

private:
    class Reporter;
    void tell_progress();
    std::shared_ptr<OpenModel> find(int id) const;
    void choose_device(const std::string& device);
    void drop_weights(OpenModel& model, const widgets::Mailbox::Sender& send);
    void make_room(const std::shared_ptr<OpenModel>& model, const widgets::Mailbox::Sender& send);
    void load(const std::shared_ptr<OpenModel>& model, model::Residence residence, Progress& progress,
              const Cancellation& cancellation, const widgets::Mailbox::Sender& send);
    void take(std::shared_ptr<OpenModel> model);

    std::string resources_;
    int threads_;
    int last_id_ = 0;
    bool running_ = false;
    RunProgress progress_;
    QTimer progress_turn_;  ///< updates the words between two steps
    std::map<int, std::shared_ptr<OpenModel>> models_;
    std::vector<widgets::ModelCard> cards_;
    std::set<QString> coming_, coming_back_;      ///< paths that are being opened: wanted, of a session
    std::string device_ = "cpu";                  ///< the compute thread's
    std::list<std::weak_ptr<OpenModel>> loaded_;  ///< the compute thread's: models with weights, last used last
    double rate_ = 0;                             ///< multiplications a second; 0: not known yet
    widgets::Mailbox mailbox_{this};
    Worker files_;
    Worker back_;  ///< opens what is brought back
    Worker compute_;
};

}  // namespace headscope::app

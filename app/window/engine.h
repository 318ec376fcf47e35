// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What computes for the window: one thread owns LibTorch and the weights, another opens checkpoints and makes tokens.
// Everything here is called on the window's thread, never waits, and answers by signals there.

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
#include "core/base/worker.h"
#include "widgets/desk/desk.h"
#include "widgets/mailbox.h"
#include "widgets/panels/text_choice.h"

namespace headscope::app {

struct OpenModel;

class Engine : public QObject {
    Q_OBJECT
public:
    explicit Engine(int threads, QObject* parent = nullptr);
    ~Engine() override;  ///< stops what runs and waits for it

    /// A path that is on its way already is not opened twice. `of_session`: it is brought back, nobody waits for it, so
    /// that a disk which does not answer holds up others that are brought back, and nothing else.
    void open_model(const QString& path, bool of_session = false);
    void close_model(int id);
    /// The id of an open model with that path; 0: none.
    int model_at(const QString& path) const;
    const std::vector<widgets::ModelCard>& models() const { return cards_; }
    /// For services with a thread of their own; null: it was closed.
    std::shared_ptr<const OpenModel> opened(int id) const { return find(id); }

    /// The tokens and the cost of a choice; an older question that waits is dropped.
    void preview(const widgets::TextChoice& choice);
    /// Runs a choice into a new analysis file of `folder`. One run at a time.
    void run(const widgets::TextChoice& choice, const std::filesystem::path& folder);
    void stop();
    /// How fast this machine is (multiplications a second), for what is told before a run: as it was kept, or measured
    /// in the background, which a run puts an end to. rate_measured() tells of both runs and measurements.
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
    void make_room(const std::shared_ptr<OpenModel>& model, const widgets::Mailbox::Sender& send);
    void take(std::shared_ptr<OpenModel> model);

    std::string resources_;
    int threads_;
    int last_id_ = 0;
    bool running_ = false;
    RunProgress progress_;
    QTimer progress_turn_;  ///< of what is told between two steps
    std::map<int, std::shared_ptr<OpenModel>> models_;
    std::vector<widgets::ModelCard> cards_;
    std::set<QString> coming_, coming_back_;      ///< paths that are being opened: wanted, of a session
    std::list<std::weak_ptr<OpenModel>> loaded_;  ///< the compute thread's: models with weights, last used last
    double rate_ = 0;                             ///< multiplications a second; 0: not known yet
    widgets::Mailbox mailbox_{this};
    Worker files_;
    Worker back_;  ///< opens what is brought back
    Worker compute_;
};

}  // namespace headscope::app

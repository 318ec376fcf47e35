// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <memory>

#include "core/base/progress.h"
#include "widgets/mailbox.h"
#include "widgets/panels/text_choice.h"
#include "widgets/views/stepper/step_source.h"

namespace headscope::store {
struct AskRecord;
}

namespace headscope::app {

class Engine;

/// Generates step by step with an open model of the engine, on its compute thread.
class StepService : public widgets::StepSource {
    Q_OBJECT
public:
    /// `choice`: the text panel's, whose model, device, first text, decoder's text and interventions begin() takes.
    StepService(Engine* engine, std::function<widgets::TextChoice()> choice, QObject* parent = nullptr);
    ~StepService() override;

    QString model() const override;
    std::shared_ptr<const widgets::ShownGeneration> generation() const override { return generation_; }
    std::shared_ptr<const widgets::ShownSteering> steering() const override { return steering_; }
    bool busy() const override { return pending_ > 0; }
    QString words() const override { return busy() ? words_ : QString(); }

    void begin(const widgets::StepOptions& options) override;
    void step(int count) override;
    void keep(int count) override;
    void replace(int step, const QString& token) override;
    void steer(int step, const widgets::StepVector& by) override;
    void stop() override;
    void save(const QString& path) override;
    /// The text panel's choice may be another.
    void follow_choice();

Q_SIGNALS:
    void saved(const QString& path, std::shared_ptr<const headscope::store::AskRecord> record);

private:
    struct Stepping;
    using Work = std::function<void(Stepping& stepping, const std::function<void()>& publish, const Cancellation&)>;
    /// `tokens`: that the work may add; `again`: it reads the text once more.
    void post(int tokens, const QString& words, Work work, bool again = false);
    void ended(const std::shared_ptr<Stepping>& of, const QString& failure);
    void drop();
    void drop_closed();

    Engine* engine_;
    std::function<widgets::TextChoice()> choice_;
    std::shared_ptr<Stepping> stepping_;  ///< its parts are the compute thread's
    std::shared_ptr<const widgets::ShownGeneration> generation_;
    std::shared_ptr<const widgets::ShownSteering> steering_;
    int pending_ = 0;  ///< pieces of work that have not ended
    QString words_;
    QString model_;  ///< model() at its last change
    widgets::Mailbox mailbox_{this};
};

}  // namespace headscope::app

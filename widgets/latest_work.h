// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <functional>
#include <memory>
#include <utility>

#include "core/base/process/worker.h"
#include "widgets/mailbox.h"

namespace headscope::widgets {

/// Work on a worker that only the latest request counts for: one at a time, the latest request next. Threads: the
/// window's; `make` runs on the worker and must not throw.
template <class Request, class Made>
class LatestWork {
public:
    /// `done` is called when made() has changed. `owner` has this as a member.
    LatestWork(QObject* owner, Worker* worker, std::function<Made(const Request&)> make, std::function<void()> done)
        : worker_(worker), make_(std::move(make)), done_(std::move(done)), mailbox_(owner) {}
    ~LatestWork() {
        mailbox_.close();
        worker_->cancel(this);
    }
    LatestWork(const LatestWork&) = delete;
    LatestWork& operator=(const LatestWork&) = delete;

    /// Does nothing where this was requested last.
    void request(const Request& wanted) {
        if (wanted == wanted_) return;
        wanted_ = wanted;
        again_ = busy_;
        if (!busy_) begin();
    }
    const Made& made() const { return made_; }
    bool idle() const { return !busy_; }

private:
    void begin() {
        again_ = false;
        busy_ = true;
        worker_->post(this, [this, make = make_, wanted = wanted_, send = mailbox_.sender()](const Cancellation&) {
            auto result = std::make_shared<Made>(make(wanted));
            send([this, result] {
                made_ = std::move(*result);
                busy_ = false;
                if (again_) begin();
                const auto done = done_;  // it may end this
                done();
            });
        });
    }

    Worker* worker_;
    std::function<Made(const Request&)> make_;
    std::function<void()> done_;
    Request wanted_;
    Made made_;
    bool busy_ = false, again_ = false;
    Mailbox mailbox_;
};

}  // namespace headscope::widgets

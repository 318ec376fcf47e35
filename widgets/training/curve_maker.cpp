// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/training/curve_maker.h"

#include <iterator>
#include <utility>

namespace headscope::widgets {
namespace {

RunLines lines_of(workspace::RunCurves curves) {
    const auto points = [](workspace::PlainCurve& curve) {
        return std::make_shared<const CurvePlot::Points>(CurvePlot::Points{std::move(curve.x), std::move(curve.y)});
    };
    return {points(curves.loss),          points(curves.smooth_loss),     points(curves.validation),
            points(curves.learning_rate), points(curves.gradient_norm),   points(curves.smooth_norm),
            points(curves.speed),         points(curves.smooth_speed),    points(curves.memory),
            points(curves.accuracy),      points(curves.smooth_accuracy), points(curves.validation_accuracy)};
}

}  // namespace

CurveMaker::CurveMaker(Worker* worker, QObject* parent) : QObject(parent), worker_(worker) {}

CurveMaker::~CurveMaker() {
    mailbox_.close();
    worker_->cancel(this);
}

const RunLines* CurveMaker::lines(int run) const {
    const auto place = made_.find(run);
    return place == made_.end() ? nullptr : &place->second.lines;
}

void CurveMaker::ask(Records records, const workspace::RunCurveOptions& options) {
    wanted_ = std::move(records);
    options_ = options;
    again_ = busy_;
    if (!busy_) begin();
}

void CurveMaker::begin() {
    again_ = false;
    std::map<int, Made> gone;
    for (auto at = made_.begin(); at != made_.end();) {
        const auto next = std::next(at);
        if (!wanted_.contains(at->first)) gone.insert(made_.extract(at));
        at = next;
    }
    if (!gone.empty()) worker_->let_go(std::make_shared<std::map<int, Made>>(std::move(gone)));
    Records outdated;
    for (const auto& [run, record] : wanted_) {
        const auto place = made_.find(run);
        if (place == made_.end() || place->second.record != record || !(place->second.options == options_))
            outdated[run] = record;
    }
    if (outdated.empty()) return;
    busy_ = true;
    worker_->post(this, [this, outdated, options = options_, send = mailbox_.sender()](const Cancellation&) {
        std::map<int, Made> done;
        try {
            for (const auto& [run, record] : outdated)
                done.emplace(run, Made{record, options, lines_of(workspace::run_curves(*record, options))});
        } catch (...) {  // no memory: what there was stays, until it is asked for again
        }
        send([this, done = std::make_shared<std::map<int, Made>>(std::move(done))]() mutable {
            const bool any = !done->empty();
            for (auto& [run, made] : *done) std::swap(made_[run], made);
            worker_->let_go(std::move(done));
            busy_ = false;
            if (again_) begin();
            // Without any, the plot would request the same failing curves at once.
            if (any) Q_EMIT made();
        });
    });
}

}  // namespace headscope::widgets

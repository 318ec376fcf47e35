// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/ask/ask_maker.h"

#include "core/base/error.h"
#include "core/figures/make_figure.h"

namespace headscope::widgets {
namespace {

MadeAskFigure make_ask_figure(const AskFigureRequest& request) {
    MadeAskFigure made{request, nullptr, {}};
    try {
        figures::FigureInputs inputs;
        inputs.asks.push_back(request.record);
        made.figure =
            std::make_shared<const figures::FigureData>(figures::make_figure(request.recipe, inputs, request.options));
    } catch (...) {
        made.failure = QString::fromUtf8(current_error("ask file").what());
    }
    return made;
}

}  // namespace

AskMaker::AskMaker(Worker* worker, QObject* parent) : QObject(parent), worker_(worker) {}

AskMaker::~AskMaker() {
    mailbox_.close();
    worker_->cancel(this);
}

void AskMaker::request(const AskFigureRequest& wanted) {
    if (wanted == wanted_) return;
    wanted_ = wanted;
    again_ = busy_;
    if (!busy_) begin();
}

void AskMaker::begin() {
    again_ = false;
    busy_ = true;
    worker_->post(this, [this, wanted = wanted_, send = mailbox_.sender()](const Cancellation&) {
        auto done = std::make_shared<MadeAskFigure>(make_ask_figure(wanted));
        send([this, done] {
            made_ = std::move(*done);
            busy_ = false;
            if (again_) begin();
            Q_EMIT made();
        });
    });
}

}  // namespace headscope::widgets

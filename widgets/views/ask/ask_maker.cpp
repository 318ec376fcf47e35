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

AskMaker::AskMaker(Worker* worker, QObject* parent)
    : QObject(parent), work_(this, worker, make_ask_figure, [this] { Q_EMIT made(); }) {}

}  // namespace headscope::widgets

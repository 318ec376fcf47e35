// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/presence.h"
#include "widgets/views/evaluation_view.h"
#include "widgets/views/views.h"

namespace headscope::widgets {

extern const ViewKind kLatency{
    "latency",
    "Latency",
    "Time to read a text and to say one more token, by length",
    [](Desk* desk, QWidget* parent) -> View* { return new EvaluationView(desk, "latency", false, parent); },
    ViewGroup::results,
    [](const Desk& desk) { return with_results(desk, "latency"); }};

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/presence.h"
#include "widgets/views/evaluation_view.h"
#include "widgets/views/views.h"

namespace headscope::widgets {

extern const ViewKind kRuler{
    "ruler",
    "Retrieval",
    "RULER's retrieval tasks by length: how much of what was asked for models find",
    [](Desk* desk, QWidget* parent) -> View* { return new EvaluationView(desk, "ruler", false, parent); },
    ViewGroup::results,
    [](const Desk& desk) { return with_results(desk, "ruler"); }};

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/presence.h"
#include "widgets/views/evaluation_view.h"
#include "widgets/views/views.h"

namespace headscope::widgets {

extern const ViewKind kAblation{
    "ablation",
    "Ablation",
    "Which layers must be Standard: results of an evaluation by layout",
    [](Desk* desk, QWidget* parent) -> View* { return new EvaluationView(desk, "ablation", true, parent); },
    ViewGroup::results,
    [](const Desk& desk) { return with_results(desk, "ablation"); }};

}  // namespace headscope::widgets

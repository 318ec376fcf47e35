// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/presence.h"
#include "widgets/views/evaluation_view.h"
#include "widgets/views/views.h"

namespace headscope::widgets {

extern const ViewKind kScaling{
    "scaling",
    "Scaling",
    "Results of an evaluation by the size of the model",
    [](Desk* desk, QWidget* parent) -> View* { return new EvaluationView(desk, "scaling", true, parent); },
    ViewGroup::results,
    [](const Desk& desk) { return with_results(desk, "scaling"); }};

}  // namespace headscope::widgets

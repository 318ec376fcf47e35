// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/presence.h"
#include "widgets/views/evaluation_view.h"
#include "widgets/views/views.h"

namespace headscope::widgets {

extern const ViewKind kPositionPerplexity{
    "position_perplexity",
    "Position perplexity",
    "Perplexity at each distance from the begin of a long text, of several models",
    [](Desk* desk, QWidget* parent) -> View* { return new EvaluationView(desk, "position-perplexity", false, parent); },
    ViewGroup::results,
    [](const Desk& desk) { return with_results(desk, "position-perplexity"); }};

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/presence.h"
#include "widgets/views/evaluation_view.h"
#include "widgets/views/views.h"

namespace headscope::widgets {

extern const ViewKind kContextPerplexity{
    "context_perplexity",
    "Context perplexity",
    "Perplexity, or another result of an evaluation, against the length of the context",
    [](Desk* desk, QWidget* parent) -> View* { return new EvaluationView(desk, "context-perplexity", false, parent); },
    ViewGroup::results,
    [](const Desk& desk) { return with_results(desk, "context-perplexity"); }};

}  // namespace headscope::widgets

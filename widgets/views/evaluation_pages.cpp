// SPDX-License-Identifier: GPL-3.0-or-later
// The views that show one recipe of evaluations and nothing else.
#include "widgets/desk/presence.h"
#include "widgets/views/evaluation_view.h"
#include "widgets/views/views.h"

namespace headscope::widgets {
namespace {

constexpr char kContextRecipe[] = "context-perplexity", kPositionRecipe[] = "position-perplexity",
               kRulerRecipe[] = "ruler", kLatencyRecipe[] = "latency", kAblationRecipe[] = "ablation",
               kScalingRecipe[] = "scaling";

template <const char* recipe, bool lengths = false>
View* make_results(Desk* desk, QWidget* parent) {
    return new EvaluationView(desk, recipe, lengths, parent);
}

template <const char* recipe>
Presence with_results_of(const Desk& desk) {
    return with_results(desk, recipe);
}

}  // namespace

extern const ViewKind kContextPerplexity{
    "context_perplexity",
    "Context perplexity",
    "Perplexity, or another result of an evaluation, against the length of the context",
    make_results<kContextRecipe>,
    ViewGroup::results,
    with_results_of<kContextRecipe>};
extern const ViewKind kPositionPerplexity{
    "position_perplexity",
    "Position perplexity",
    "Perplexity at each distance from the begin of a long text, of several models",
    make_results<kPositionRecipe>,
    ViewGroup::results,
    with_results_of<kPositionRecipe>};
extern const ViewKind kRuler{"ruler",
                             "Retrieval",
                             "RULER's retrieval tasks by length: how much of what was asked for models find",
                             make_results<kRulerRecipe>,
                             ViewGroup::results,
                             with_results_of<kRulerRecipe>};
extern const ViewKind kLatency{"latency",
                               "Latency",
                               "Time to read a text and to say one more token, by length",
                               make_results<kLatencyRecipe>,
                               ViewGroup::results,
                               with_results_of<kLatencyRecipe>};
extern const ViewKind kAblation{"ablation",
                                "Ablation",
                                "Which layers must be Standard: results of an evaluation by layout",
                                make_results<kAblationRecipe, true>,
                                ViewGroup::results,
                                with_results_of<kAblationRecipe>};
extern const ViewKind kScaling{"scaling",
                               "Scaling",
                               "Results of an evaluation by the size of the model",
                               make_results<kScalingRecipe, true>,
                               ViewGroup::results,
                               with_results_of<kScalingRecipe>};

}  // namespace headscope::widgets

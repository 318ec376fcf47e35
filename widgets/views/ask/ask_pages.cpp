// SPDX-License-Identifier: GPL-3.0-or-later
// The views of ask files: a page and a ViewKind for each recipe.
#include "core/store/ask/ask_file.h"
#include "widgets/desk/presence.h"
#include "widgets/views/ask/ask_view.h"
#include "widgets/views/views.h"

namespace headscope::widgets {
namespace {

/// Names of the tables of ask patch whose rows are `rows`: values of --site.
std::vector<std::string> patched_points(const store::AskRecord& record, const std::string& rows) {
    const std::string patched = "/patch/value/";
    std::vector<std::string> points;
    for (const store::AskTable& table : record.tables)
        if (table.path.starts_with(patched) && table.dimensions.size() > 1 && table.dimensions[1] == rows)
            points.push_back(table.path.substr(patched.size()));
    return points;
}

const AskPage kLensPage{"lens", "lens", nullptr, true};
const AskPage kPatchLayersPage{
    "patch", "patch-layers",
    [](const store::AskRecord& record, const std::string&) { return patched_points(record, "/layer"); }, true};
const AskPage kPatchHeadsPage{"patch", "patch-heads", [](const store::AskRecord& record, const std::string&) {
                                  return patched_points(record, "/site");
                              }};
const AskPage kAblationHeadsPage{"ablate", "ablation-heads"};
const AskPage kAttributionPage{"attribution", "attribution"};
const AskPage kKnockoutPage{"knockout", "knockout"};
const AskPage kSteeringPage{"steer", "steering"};
const AskPage kHeadKindsPage{"kinds", "head-kinds"};
const AskPage kCircuitsPage{"circuits", "circuits"};
const AskPage kGenerationPage{"generate", "generation", nullptr, true};

template <const AskPage& page>
Presence with_ask_page(const Desk& desk) {
    return with_ask(desk, page.tool);
}

}  // namespace

extern const ViewKind kLens{"lens",
                            "Logit lens",
                            "Which token each layer would predict, and from which layer on it is the model's",
                            make_ask_view<kLensPage>,
                            ViewGroup::asked,
                            with_ask_page<kLensPage>,
                            kLensPage.tool};
extern const ViewKind kPatchLayers{"patch_layers",
                                   "Patched layers",
                                   "Which layers and positions of a clean run repair a corrupted one",
                                   make_ask_view<kPatchLayersPage>,
                                   ViewGroup::asked,
                                   with_ask_page<kPatchLayersPage>,
                                   kPatchLayersPage.tool};
extern const ViewKind kPatchHeads{"patch_heads",
                                  "Patched heads",
                                  "Which heads of a clean run repair a corrupted one",
                                  make_ask_view<kPatchHeadsPage>,
                                  ViewGroup::asked,
                                  with_ask_page<kPatchHeadsPage>,
                                  kPatchHeadsPage.tool};
extern const ViewKind kAblationHeads{"ablation_heads",
                                     "Ablated heads",
                                     "How the metric changes without each head, attention or feed-forward",
                                     make_ask_view<kAblationHeadsPage>,
                                     ViewGroup::asked,
                                     with_ask_page<kAblationHeadsPage>,
                                     kAblationHeadsPage.tool};
extern const ViewKind kAttribution{"attribution",
                                   "Attribution",
                                   "Which heads and layers a logit comes from",
                                   make_ask_view<kAttributionPage>,
                                   ViewGroup::asked,
                                   with_ask_page<kAttributionPage>,
                                   kAttributionPage.tool};
extern const ViewKind kKnockout{"knockout",
                                "Knockout",
                                "How the metric changes when positions cannot attend to others",
                                make_ask_view<kKnockoutPage>,
                                ViewGroup::asked,
                                with_ask_page<kKnockoutPage>,
                                kKnockoutPage.tool};
extern const ViewKind kSteering{"steering",
                                "Steering",
                                "How the metric changes with a vector added to a layer",
                                make_ask_view<kSteeringPage>,
                                ViewGroup::asked,
                                with_ask_page<kSteeringPage>,
                                kSteeringPage.tool};
extern const ViewKind kHeadKinds{"head_kinds",
                                 "Head kinds",
                                 "Which heads look at the previous token, at copies, or at what followed them",
                                 make_ask_view<kHeadKindsPage>,
                                 ViewGroup::asked,
                                 with_ask_page<kHeadKindsPage>,
                                 kHeadKindsPage.tool};
extern const ViewKind kCircuits{"circuits",
                                "Circuits",
                                "What the weights of heads say: spectra, copying, composition",
                                make_ask_view<kCircuitsPage>,
                                ViewGroup::asked,
                                with_ask_page<kCircuitsPage>,
                                kCircuitsPage.tool};
extern const ViewKind kGeneration{"generation",
                                  "Generation",
                                  "Which tokens a model generates, and how sure it is of each",
                                  make_ask_view<kGenerationPage>,
                                  ViewGroup::asked,
                                  with_ask_page<kGenerationPage>,
                                  kGenerationPage.tool};

}  // namespace headscope::widgets

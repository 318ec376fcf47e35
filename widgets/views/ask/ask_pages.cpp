// SPDX-License-Identifier: GPL-3.0-or-later
// The views of ask files: a page and a ViewKind for each recipe.
#include "core/figures/recipes/ask/ask_panels.h"
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

std::vector<std::string> numbers_to(std::int64_t count, std::int64_t first = 0) {
    std::vector<std::string> numbers;
    for (std::int64_t i = first; i < count; ++i) numbers.push_back(std::to_string(i));
    return numbers;
}

/// Measures of heads of ask corpus; indicators by their means over texts, and "std/NAME", their deviations.
std::vector<std::string> corpus_measures(const store::AskRecord& record, const std::string&) {
    const std::string corpus = "/corpus/", mean = "/corpus/mean/";
    std::vector<std::string> measures;
    for (const store::AskTable& table : record.tables) {
        if (!figures::is_corpus_measure(table)) continue;
        measures.push_back(table.path.substr(table.path.starts_with(mean) ? mean.size() : corpus.size()));
    }
    return measures;
}

/// Layers and heads but for 0, which recipes take without a choice.
std::vector<std::string> layers_and_heads(const store::AskRecord& record, const std::string& option) {
    return numbers_to(option == "head" ? record.size_of("/head") : std::ssize(record.mixers), 1);
}

/// Indicators and layers of ask series.
std::vector<std::string> series_values(const store::AskRecord& record, const std::string& option) {
    if (option == "layer") return numbers_to(std::ssize(record.mixers));
    const std::string series = "/series/";
    std::vector<std::string> indicators;
    for (const store::AskTable& table : record.tables)
        if (table.path.starts_with(series) && table.dimensions.size() > 2)
            indicators.push_back(table.path.substr(series.size()));
    return indicators;
}

const AskPage kLensPage{"lens", "lens", nullptr, "all", true};
const AskPage kPatchLayersPage{
    "patch", "patch-layers",
    [](const store::AskRecord& record, const std::string&) { return patched_points(record, "/layer"); }, "all", true};
const AskPage kPatchHeadsPage{"patch", "patch-heads", [](const store::AskRecord& record, const std::string&) {
                                  return patched_points(record, "/site");
                              }};
const AskPage kAblationHeadsPage{"ablate", "ablation-heads"};
const AskPage kAttributionPage{"attribution", "attribution"};
const AskPage kSinkRatePage{"sinks", "sink-rate"};
const AskPage kMassiveActivationsPage{"sinks", "massive-activations", nullptr, "all", true};
const AskPage kValueNormsPage{"sinks", "value-norms", nullptr, "all", true};
const AskPage kCorpusScatterPage{"corpus", "corpus-scatter", corpus_measures, "usual"};
const AskPage kCorpusHeadPage{"corpus", "corpus-head", layers_and_heads, "0"};
const AskPage kCacheErrorPage{"cache", "cache-error"};
const AskPage kSeriesPage{
    "series", "timeline", series_values,
    "all",    false,      [](const std::string& option) { return option == "indicator" || option == "layer"; }};
const AskPage kKnockoutPage{"knockout", "knockout"};
const AskPage kSteeringPage{"steer", "steering"};
const AskPage kHeadKindsPage{"kinds", "head-kinds"};
const AskPage kCircuitsPage{"circuits", "circuits"};
const AskPage kGenerationPage{"generate", "generation", nullptr, "all", true};

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
extern const ViewKind kSinkRate{"sink_rate",
                                "Sink rate",
                                "How many heads leave their weight on the first token",
                                make_ask_view<kSinkRatePage>,
                                ViewGroup::asked,
                                with_ask_page<kSinkRatePage>,
                                kSinkRatePage.tool};
extern const ViewKind kMassiveActivations{"massive_activations",
                                          "Massive activations",
                                          "Which tokens and channels have activations far beyond the others",
                                          make_ask_view<kMassiveActivationsPage>,
                                          ViewGroup::asked,
                                          with_ask_page<kMassiveActivationsPage>,
                                          kMassiveActivationsPage.tool};
extern const ViewKind kValueNorms{"value_norms",
                                  "Value norms",
                                  "How small the values of sinks are",
                                  make_ask_view<kValueNormsPage>,
                                  ViewGroup::asked,
                                  with_ask_page<kValueNormsPage>,
                                  kValueNormsPage.tool};
extern const ViewKind kCorpusScatter{"corpus_scatter",
                                     "Corpus",
                                     "All heads by two measures over a corpus",
                                     make_ask_view<kCorpusScatterPage>,
                                     ViewGroup::asked,
                                     with_ask_page<kCorpusScatterPage>,
                                     kCorpusScatterPage.tool};
extern const ViewKind kCorpusHead{"corpus_head",
                                  "Corpus head",
                                  "One head over a corpus: its largest weights, distances, tokens and texts",
                                  make_ask_view<kCorpusHeadPage>,
                                  ViewGroup::asked,
                                  with_ask_page<kCorpusHeadPage>,
                                  kCorpusHeadPage.tool};
extern const ViewKind kSeries{"series",
                              "Series",
                              "How indicators change from checkpoint to checkpoint of a model",
                              make_ask_view<kSeriesPage>,
                              ViewGroup::asked,
                              with_ask_page<kSeriesPage>,
                              kSeriesPage.tool};
extern const ViewKind kCacheError{"cache_error",
                                  "Cache error",
                                  "How outputs change with a smaller key-value cache, by head",
                                  make_ask_view<kCacheErrorPage>,
                                  ViewGroup::asked,
                                  with_ask_page<kCacheErrorPage>,
                                  kCacheErrorPage.tool};

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
// The views that show one recipe and nothing else: a page and a ViewKind each.
#include <string_view>

#include "core/figures/recipes/radar_rule.h"
#include "core/workspace/measures.h"
#include "widgets/desk/presence.h"
#include "widgets/views/recipe_view.h"
#include "widgets/views/views.h"

namespace headscope::widgets {
namespace {

using figures::FigureOptions;
using Texts = RecipePage::Texts;

std::int64_t layer_of(const Study& study, std::int64_t site) {
    return study.sites().at(static_cast<std::size_t>(site)).layer;
}

void set_layer(FigureOptions& options, const Study& study, const Selection& selection) {
    options.layer = layer_of(study, selection.site);
}

void set_head(FigureOptions& options, const Study&, const Selection& selection) {
    options.head = selection.head;
}

QString page_text(const char* text) {
    return RecipeView::tr(text);
}

/// The letters at the spokes.
QString spoke_words() {
    const auto text = [](std::string_view words) {
        return QString::fromUtf8(words.data(), static_cast<qsizetype>(words.size())).toHtmlEscaped();
    };
    QString rows;
    for (std::size_t k = 0; k < figures::kRadarSpokes; ++k)
        if (const workspace::Measure* about = workspace::find_measure(figures::kRadarNames[k]))
            rows += RecipeView::tr("<tr><td><b>%1</b>&nbsp;</td><td>%2: %3 Source: %4.</td></tr>")
                        .arg(QLatin1String(figures::kRadarSymbols[k]), text(about->title), text(about->definition),
                             text(about->source));
    return QStringLiteral("<table>%1</table>").arg(rows);
}

const RecipePage kRadarPage{"radar",
                            {{"of",
                              "Heads drawn",
                              "Draw means over the heads of each layer, or the selected head",
                              {{"mean", "Means over heads"}, {"head", "Selected head", set_head}}}},
                            nullptr,
                            Texts::chosen,
                            nullptr,
                            spoke_words};

const RecipePage kStatesPage{
    "states",
    {{"by",
      "Curves",
      "Draw a curve for each layer (mean over its heads), for each head of the selected layer, or for the selected "
      "head in each layer",
      {{"layers", "By layer"}, {"heads", "Heads of the layer", set_layer}, {"head", "One head by layer", set_head}}}},
    [](const Study& study) -> std::optional<MissingData> {
        if (study.header().record.states) return std::nullopt;
        MissingData missing{
            page_text("States were not recorded"),
            study.running()
                ? page_text("Norms and variances of queries, keys, values and hidden states are recorded on request. "
                            "You can repeat this run with states when it has ended.")
                : page_text("Norms and variances of queries, keys, values and hidden states are recorded on request."),
            page_text("Run again with states")};
        missing.run.states = true;
        return missing;
    },
    Texts::chosen,
    [](const Study& study, const Selection& selection, const QString& choice) {
        return choice == QLatin1String("heads")
                   ? page_text("%1; the selected head's curves are bold. Click a curve to choose its head")
                         .arg(study.site_heading(selection.site))
                   : page_text("The selected layer's curves are bold. Click a curve to choose its layer");
    }};

const RecipePage kMassPage{"mass",
                           {{"of",
                             "What is shown",
                             "The heads of every layer, or those of the selected one",
                             {{"layers", "All layers"}, {"heads", "Heads of the layer", set_layer}}}},
                           nullptr,
                           Texts::chosen,
                           [](const Study&, const Selection&, const QString&) {
                               return page_text("Click the top of a bar: choose its head");
                           }};

const RecipePage kBiasPage{
    "bias",
    {{"of",
      "Layers shown",
      "Every layer, the selected one, or the selected head in each",
      {{"layers", "All layers"}, {"layer", "The selected layer", set_layer}, {"head", "One head by layer", set_head}}},
     {"distance",
      "Distance",
      "The axis of distances",
      {{"logarithmic", "Logarithmic"},
       {"linear", "Linear",
        [](FigureOptions& options, const Study&, const Selection&) {
            options.distance = figures::ScaleKind::linear;
        }}}}},
    [](const Study& study) -> std::optional<MissingData> {
        if (study.header().bias_window > 0 || study.header().has_slopes) return std::nullopt;
        return MissingData{
            page_text("No bias by distance"),
            page_text("Lazy Attention learns a bias for each distance between query and key, ALiBi has a slope, T5 a "
                      "few buckets. This model has none of these, or an older version made the analysis.")};
    },
    Texts::none,
    [](const Study&, const Selection&, const QString&) {
        return page_text("Above 0 raises the scores at that distance · Click a curve to choose its head");
    }};

const RecipePage kOffsetsPage{
    "offsets",
    {},
    [](const Study& study) -> std::optional<MissingData> {
        if (study.header().has_offsets) return std::nullopt;
        return MissingData{
            page_text("No offsets"),
            page_text("Heads with an elastic normalizer (Lazy Attention) add an offset to each weight and cut off what "
                      "is below 0. This model has none, or the analysis was made before they were kept.")};
    },
    Texts::none,
    [](const Study&, const Selection&, const QString&) {
        return page_text("−1: weights below the mean of their row become 0 · click: choose a layer or a head");
    }};

const RecipePage kHeadEmbeddingsPage{
    "head-embeddings",
    {{"of",
      "Layers shown",
      "Norms and cosines of every layer, or the cosines of the selected one",
      {{"layers", "All layers"}, {"layer", "The selected layer", set_layer}}}},
    [](const Study& study) -> std::optional<MissingData> {
        if (study.header().head_embedding_size > 0) return std::nullopt;
        return MissingData{
            page_text("No head embeddings"),
            page_text("Heads of mhe_add and mhe_mul share their maps and differ by one embedding each. This model has "
                      "no such layer, or an older version made the analysis.")};
    },
    Texts::chosen,
    [](const Study&, const Selection&, const QString& choice) {
        return choice == QLatin1String("layer")
                   ? page_text("Cosine 1: both embeddings have the same direction · Click to choose a head")
                   : page_text("Cosine 1: both embeddings have the same direction · Click to choose a layer or a head");
    }};

/// The selected layer, or the first one with branches.
std::int64_t branched_layer(const Study& study, std::int64_t site) {
    std::optional<std::int64_t> first;
    for (const auto one : measured_sites(study)) {
        if (!study.header().weighed(study.sites()[static_cast<std::size_t>(one)])) continue;
        if (layer_of(study, one) == layer_of(study, site)) return layer_of(study, one);
        if (!first) first = layer_of(study, one);
    }
    return first.value_or(layer_of(study, site));
}

const RecipePage kBranchesPage{
    "branch-weights",
    {{"by",
      "Curves",
      "A curve for each layer (means over its heads), or for each head of the selected layer",
      {{"layers", "By layer"},
       {"heads", "Heads of the layer",
        [](FigureOptions& options, const Study& study, const Selection& selection) {
            options.layer = branched_layer(study, selection.site);
        }}}}},
    [](const Study& study) -> std::optional<MissingData> {
        if (study.header().type_chunk == 0) {
            return MissingData{page_text("No branch weights"),
                               page_text("Only NAtS-L layers weigh softmax against linear attention, token by token. "
                                         "This model has no such layer.")};
        }
        if (study.header().record.branches) return std::nullopt;
        MissingData missing{page_text("Branch weights were not recorded"),
                            page_text("Run again with branch weights to see how much of each branch a token takes "
                                      "(--record branch-weights)."),
                            page_text("Run again with branch weights")};
        missing.run.branches = true;
        return missing;
    },
    Texts::first,  // positions of other texts hold other tokens
    [](const Study& study, const Selection& selection, const QString& choice) {
        return choice == QLatin1String("heads")
                   ? page_text("Layer %1 · Click a curve to choose its head").arg(branched_layer(study, selection.site))
                   : page_text("Click a curve to choose its layer");
    }};

}  // namespace

extern const ViewKind kRadar{"radar",
                             "Radar",
                             "How the indicators change from layer to layer, and between models",
                             make_recipe_view<kRadarPage>,
                             ViewGroup::layers,
                             with_sites};
extern const ViewKind kStates{"states",
                              "States",
                              "Which positions have large or small queries, keys, values and hidden states",
                              make_recipe_view<kStatesPage>,
                              ViewGroup::layers,
                              with_states};
extern const ViewKind kMass{"mass",
                            "Mass",
                            "Where the weight of a row goes, and how many weights are exactly 0",
                            make_recipe_view<kMassPage>,
                            ViewGroup::distributions,
                            with_scores};
extern const ViewKind kBias{"bias",
                            "Bias",
                            "What is added to scores by the distance of query and key",
                            make_recipe_view<kBiasPage>,
                            ViewGroup::layers,
                            with_biases};
extern const ViewKind kOffsets{
    "offsets",
    "Offsets",
    "How much of a weight heads with an elastic normalizer cut off",
    make_recipe_view<kOffsetsPage>,
    ViewGroup::distributions,
    [](const Desk& desk) { return filled_if(desk.current() && desk.current()->header().has_offsets); }};
extern const ViewKind kHeadEmbeddings{
    "head_embeddings",
    "Head embeddings",
    "What the heads of multiple-head-embedding attention differ by",
    make_recipe_view<kHeadEmbeddingsPage>,
    ViewGroup::heads,
    [](const Desk& desk) { return filled_if(desk.current() && desk.current()->header().head_embedding_size > 0); }};
extern const ViewKind kBranchWeights{"branch_weights",
                                     "Branch weights",
                                     "How much NAtS-L takes of softmax and of linear attention, token by token",
                                     make_recipe_view<kBranchesPage>,
                                     ViewGroup::text,
                                     with_branches};

}  // namespace headscope::widgets

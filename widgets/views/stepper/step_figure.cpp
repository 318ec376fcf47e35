// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/stepper/step_figure.h"

#include <cmath>
#include <utility>

#include "core/figures/recipes/ask/ask_panels.h"
#include "core/store/ask/ask_file.h"

namespace headscope::widgets {
namespace {

struct MeasureWords {
    const char *title, *unit;
};
constexpr std::array<MeasureWords, kStepMeasures> kMeasureWords{
    {{"entropy of the row", "nat"}, {"weight of the first token", "share"}, {"mean distance of the row", "token"}}};

}  // namespace

std::shared_ptr<const figures::FigureData> step_figure(const ShownGeneration& generation, std::size_t step,
                                                       StepMeasure measure) {
    if (generation.sites.empty() || step >= generation.steps.size()) return nullptr;
    const auto at = static_cast<std::size_t>(measure);
    const figures::AskValues cells{
        {std::ssize(generation.sites), generation.heads}, generation.steps[step]->measures[at], 0};
    figures::Panel panel = figures::ask_panel(cells, kMeasureWords[at].unit, std::nan(""));
    panel.title = kMeasureWords[at].title;
    store::AskRecord sites;
    sites.sites = generation.sites;
    figures::set_site_axis(panel.y, sites);
    figures::set_layer_axis(panel.x, generation.heads, "Head");
    auto figure = std::make_shared<figures::FigureData>();
    figure->panels.push_back(std::move(panel));
    figure->panel_aspect = 0.6;
    return figure;
}

std::vector<float> step_weights(const ShownGeneration& generation, std::size_t step, std::int64_t site,
                                std::int64_t head) {
    if (step >= generation.steps.size() || site < 0 || head < 0) return {};
    const std::vector<StepRow>& rows = generation.steps[step]->rows;
    if (site >= std::ssize(rows)) return {};
    const StepRow& row = rows[static_cast<std::size_t>(site)];
    if ((head + 1) * row.keys > std::ssize(row.weights) || row.keys == 0) return {};
    std::vector<float> weights(static_cast<std::size_t>(row.first_key), 0.0F);
    const auto begin = row.weights.begin() + head * row.keys;
    weights.insert(weights.end(), begin, begin + row.keys);
    return weights;
}

}  // namespace headscope::widgets

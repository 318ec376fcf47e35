// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/radar.h"

#include <QComboBox>
#include <algorithm>
#include <string_view>

#include "core/figures/recipes/radar_rule.h"
#include "core/workspace/measures.h"
#include "widgets/desk/presence.h"

namespace headscope::widgets {
namespace {

/// What the letters at the spokes stand for.
QString spoke_words() {
    const auto text = [](std::string_view words) {
        return QString::fromUtf8(words.data(), static_cast<qsizetype>(words.size())).toHtmlEscaped();
    };
    QString rows;
    for (std::size_t k = 0; k < figures::kRadarSpokes; ++k)
        if (const workspace::Measure* about = workspace::find_measure(figures::kRadarNames[k]))
            rows += RadarView::tr("<tr><td><b>%1</b>&nbsp;</td><td>%2: %3 Source: %4.</td></tr>")
                        .arg(QLatin1String(figures::kRadarSymbols[k]), text(about->title), text(about->definition),
                             text(about->source));
    return QStringLiteral("<table>%1</table>").arg(rows);
}

}  // namespace

RadarView::RadarView(Desk* desk, QWidget* parent) : RecipeView(desk, "radar", parent) {
    of_ = add_choice("of", tr("Heads drawn"), tr("Draw means over the heads of each layer, or the selected head"),
                     {{"mean", tr("Means over heads")}, {"head", tr("Selected head")}});
    picture()->setToolTip(spoke_words());
}

figures::FigureOptions RadarView::options() const {
    figures::FigureOptions options = RecipeView::options();
    if (choice(of_) == QLatin1String("head")) options.head = selection().head;
    return options;
}

// Panels go layer by layer, and within a layer analysis by analysis.

std::vector<FigureView::Mark> RadarView::marks(const figures::FigureData& figure) const {
    const auto sites = measured_sites(*study());
    const auto place = std::find(sites.begin(), sites.end(), selection().site);
    if (place == sites.end()) return {};
    std::vector<FigureView::Mark> marks;
    const auto models = std::ssize(shown_studies());
    for (std::int64_t m = 0; m < models; ++m) {
        const std::int64_t panel = (place - sites.begin()) * models + m;
        if (panel < std::ssize(figure.panels)) marks.push_back({static_cast<int>(panel), -1});
    }
    return marks;
}

void RadarView::clicked(int panel, int, int) {
    const auto sites = measured_sites(*study());
    const auto place = static_cast<std::size_t>(panel) / shown_studies().size();
    if (place < sites.size()) desk().select_head(sites[place], selection().head);
}

extern const ViewKind kRadar{"radar",
                             "Radar",
                             "How the indicators change from layer to layer, and between models",
                             [](Desk* desk, QWidget* parent) -> View* { return new RadarView(desk, parent); },
                             ViewGroup::layers,
                             with_sites};

}  // namespace headscope::widgets

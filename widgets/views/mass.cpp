// SPDX-License-Identifier: GPL-3.0-or-later
#include <QComboBox>
#include <algorithm>
#include <cmath>

#include "widgets/desk/presence.h"
#include "widgets/views/recipe_view.h"
#include "widgets/views/views.h"

namespace headscope::widgets {
namespace {

constexpr int kBarPoints = 4;  ///< of the recipe's bars

/// Where the weight of a row goes: first key, other keys, learned sink, released; and which weights are exactly 0.
class MassView final : public RecipeView {
public:
    MassView(Desk* desk, QWidget* parent) : RecipeView(desk, "mass", parent) {
        of_ = add_choice("of", tr("What is shown"), tr("The heads of every layer, or those of the selected one"),
                         {{"layers", tr("All layers")}, {"heads", tr("Heads of the layer")}});
    }

protected:
    figures::FigureOptions options() const override {
        figures::FigureOptions options = RecipeView::options();
        if (of_layer()) options.layer = study()->sites().at(static_cast<std::size_t>(selection().site)).layer;
        return options;
    }

    /// The table below is of all heads: the bars that are the selected head's would be a line among many.
    std::vector<FigureView::Mark> marks(const figures::FigureData&) const override { return {}; }

    void clicked(int panel, int row, int point) override {
        const auto* shown = picture()->figure();
        if (!shown || panel >= std::ssize(shown->panels) || row < 0 || point < 0) return;
        const auto& drawn = shown->panels[static_cast<std::size_t>(panel)];
        const auto* curves = std::get_if<figures::Curves>(&drawn.content);
        if (!curves || row >= std::ssize(curves->curves)) return;
        const auto& curve = curves->curves[static_cast<std::size_t>(row)];
        const auto at = static_cast<std::size_t>(point);
        if (at >= curve.x.size()) return;
        // A bar is four points around its middle.
        const std::size_t first = curve.filled ? at / kBarPoints * kBarPoints : at;
        const double x = curve.filled ? (curve.x[first] + curve.x[first + 2]) / 2 : curve.x[at];
        const auto tick = static_cast<std::size_t>(std::max(0.0, std::round(x)));
        if (tick >= drawn.x.ticks.size()) return;
        if (of_layer()) return desk().select_head(selection().site, static_cast<std::int64_t>(tick));
        const auto site = measured_site(*study(), drawn.x.ticks[tick].label);
        if (!site) return;
        const auto heads = study()->sites().at(static_cast<std::size_t>(*site)).heads;
        const double within = (x - static_cast<double>(tick) + kHalf) / (2 * kHalf);
        const bool of_head = curve.filled || curve.points;
        const auto head = std::clamp<std::int64_t>(static_cast<std::int64_t>(within * heads), 0, heads - 1);
        desk().select_head(*site, of_head ? head : selection().head);
    }

    QString words(const figures::FigureData&) const override { return tr("Click the top of a bar: choose its head"); }

private:
    static constexpr double kHalf = 0.42;  ///< of a layer's place, taken by its bars
    bool of_layer() const { return choice(of_) == QLatin1String("heads"); }

    QComboBox* of_;
};

}  // namespace

extern const ViewKind kMass{"mass",
                            "Mass",
                            "Where the weight of a row goes, and how many weights are exactly 0",
                            [](Desk* desk, QWidget* parent) -> View* { return new MassView(desk, parent); },
                            ViewGroup::distributions,
                            with_scores};

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/presence.h"
#include "widgets/views/recipe_view.h"
#include "widgets/views/views.h"

namespace headscope::widgets {
namespace {

/// Offsets of Elastic-Softmax: how much of a weight each head cuts off.
class OffsetsView final : public RecipeView {
public:
    OffsetsView(Desk* desk, QWidget* parent) : RecipeView(desk, "offsets", parent) {}

protected:
    bool missing() override {
        if (study()->header().has_offsets) return false;
        show_notice(
            tr("No offsets"),
            tr("Heads with an elastic normalizer (Lazy Attention) add an offset to each weight and cut off what is "
               "below 0. This model has none, or the analysis was made before they were kept."));
        return true;
    }

    figures::FigureOptions options() const override { return {}; }  // the same for every text

    bool can_join(const Study& other) const override { return other.header().has_offsets; }

    std::vector<FigureView::Mark> marks(const figures::FigureData& figure) const override {
        std::vector<FigureView::Mark> marks;
        for (int p = 0; p < std::ssize(figure.panels); ++p) {
            const auto names = row_names(figure.panels[static_cast<std::size_t>(p)]);
            for (int row = 0; row < std::ssize(names); ++row)
                if (measured_site(*study(), names[static_cast<std::size_t>(row)]) == selection().site)
                    marks.push_back({p, row, static_cast<int>(selection().head)});
        }
        return marks;
    }

    void clicked(int panel, int row, int column) override {
        const auto* shown = picture()->figure();
        if (!shown || panel >= std::ssize(shown->panels) || row < 0) return;
        const auto names = row_names(shown->panels[static_cast<std::size_t>(panel)]);
        if (row >= std::ssize(names)) return;
        if (const auto site = measured_site(*study(), names[static_cast<std::size_t>(row)]))
            desk().select_head(*site, column >= 0 ? column : selection().head);
    }

    QString words(const figures::FigureData&) const override {
        return tr("−1: weights below the mean of their row become 0 · click: choose a layer or a head");
    }

private:
    static std::vector<std::string> row_names(const figures::Panel& panel) {
        std::vector<std::string> names;
        if (const auto* violins = std::get_if<figures::Ridges>(&panel.content))
            for (const auto& ridge : violins->ridges) names.push_back(ridge.name);
        else
            for (const auto& tick : panel.y.ticks) names.push_back(tick.label);
        return names;
    }
};

}  // namespace

extern const ViewKind kOffsets{
    "offsets",
    "Offsets",
    "How much of a weight heads with an elastic normalizer cut off",
    [](Desk* desk, QWidget* parent) -> View* { return new OffsetsView(desk, parent); },
    ViewGroup::distributions,
    [](const Desk& desk) { return filled_if(desk.current() && desk.current()->header().has_offsets); }};

}  // namespace headscope::widgets

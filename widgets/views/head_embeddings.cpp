// SPDX-License-Identifier: GPL-3.0-or-later
#include <QComboBox>

#include "widgets/desk/presence.h"
#include "widgets/views/recipe_view.h"
#include "widgets/views/views.h"

namespace headscope::widgets {
namespace {

/// What the heads of multiple-head-embedding attention differ by: norms and cosines, and how far their weights differ.
class HeadEmbeddingsView final : public RecipeView {
public:
    HeadEmbeddingsView(Desk* desk, QWidget* parent) : RecipeView(desk, "head-embeddings", parent) {
        of_ = add_choice("of", tr("Layers shown"),
                         tr("Norms and cosines of every layer, or the cosines of the selected one"),
                         {{"layers", tr("All layers")}, {"layer", tr("The selected layer")}});
    }

protected:
    bool missing() override {
        if (embeds(*study())) return false;
        show_notice(tr("No head embeddings"),
                    tr("Heads of mhe_add and mhe_mul share their maps and differ by one embedding each. This model has "
                       "no such layer, or an older version made the analysis."));
        return true;
    }

    figures::FigureOptions options() const override {
        figures::FigureOptions options = RecipeView::options();
        if (one_layer()) options.layer = layer_of(selection().site);
        return options;
    }

    bool can_join(const Study& other) const override { return embeds(other) && RecipeView::can_join(other); }

    std::vector<FigureView::Mark> marks(const figures::FigureData& figure) const override {
        std::vector<FigureView::Mark> marks;
        const int head = static_cast<int>(selection().head);
        for (int p = 0; p < std::ssize(figure.panels); ++p) {
            const auto& panel = figure.panels[static_cast<std::size_t>(p)];
            if (one_layer()) continue;
            for (int row = 0; row < std::ssize(panel.y.ticks); ++row) {
                const auto& name = panel.y.ticks[static_cast<std::size_t>(row)].label;
                if (measured_site(*study(), name) != selection().site) continue;
                if (std::holds_alternative<figures::HeatMap>(panel.content)) marks.push_back({p, row, head});
            }
        }
        return marks;
    }

    void clicked(int panel, int row, int column) override {
        const auto* shown = picture()->figure();
        if (!shown || panel >= std::ssize(shown->panels) || row < 0) return;
        const auto& drawn = shown->panels[static_cast<std::size_t>(panel)];
        // Rows of one layer's squares are its heads.
        if (one_layer()) return desk().select_head(selection().site, row);
        if (row >= std::ssize(drawn.y.ticks)) return;
        const bool heads = std::holds_alternative<figures::HeatMap>(drawn.content) && column >= 0;
        if (const auto site = measured_site(*study(), drawn.y.ticks[static_cast<std::size_t>(row)].label))
            desk().select_head(*site, heads ? column : selection().head);
    }

    QString words(const figures::FigureData&) const override {
        return one_layer()
                   ? tr("Cosine 1: both embeddings have the same direction · Click to choose a head")
                   : tr("Cosine 1: both embeddings have the same direction · Click to choose a layer or a head");
    }

private:
    static bool embeds(const Study& study) { return study.header().head_embedding_size > 0; }
    bool one_layer() const { return choice(of_) == QLatin1String("layer"); }
    std::int64_t layer_of(std::int64_t site) const { return study()->sites().at(static_cast<std::size_t>(site)).layer; }

    QComboBox* of_;
};

}  // namespace

extern const ViewKind kHeadEmbeddings{
    "head_embeddings",
    "Head embeddings",
    "What the heads of multiple-head-embedding attention differ by",
    [](Desk* desk, QWidget* parent) -> View* { return new HeadEmbeddingsView(desk, parent); },
    ViewGroup::heads,
    [](const Desk& desk) { return filled_if(desk.current() && desk.current()->header().head_embedding_size > 0); }};

}  // namespace headscope::widgets

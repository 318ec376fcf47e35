// SPDX-License-Identifier: GPL-3.0-or-later
#include <QComboBox>
#include <QStringList>

#include "widgets/desk/presence.h"
#include "widgets/views/recipe_view.h"
#include "widgets/views/views.h"

namespace headscope::widgets {
namespace {

/// How much NAtS-L takes of softmax and of linear attention, token by token.
class BranchWeightsView final : public RecipeView {
public:
    BranchWeightsView(Desk* desk, QWidget* parent) : RecipeView(desk, "branch-weights", parent) {
        by_ = add_choice("by", tr("Curves"),
                         tr("A curve for each layer (means over its heads), or for each head of the selected layer"),
                         {{"layers", tr("By layer")}, {"heads", tr("Heads of the layer")}});
    }

protected:
    bool missing() override {
        const auto& header = study()->header();
        if (header.type_chunk == 0) {
            show_notice(tr("No branch weights"), tr("Only NAtS-L layers weigh softmax against linear attention, token "
                                                    "by token. This model has no such layer."));
            return true;
        }
        if (header.record.branches) return false;
        show_notice(
            tr("Branch weights were not recorded"),
            tr("Run again with branch weights to see how much of each branch a token takes (--record branch-weights)."),
            study()->running() ? QString() : tr("Run again with branch weights"), [this] {
                if (!study()) return;
                RunWish wish;
                wish.study = study()->id();
                wish.branches = true;
                Q_EMIT desk().run_wanted(wish);
            });
        return true;
    }

    figures::FigureOptions options() const override {
        figures::FigureOptions options = RecipeView::options();
        options.sequence = selection().one_sequence();  // positions of other texts hold other tokens
        options.all_sequences = false;
        if (choice(by_) == QLatin1String("heads")) options.layer = shown_layer();
        return options;
    }

    bool can_join(const Study& other) const override {
        return RecipeView::can_join(other) && other.header().record.branches;
    }

    std::vector<FigureView::Mark> marks(const figures::FigureData& figure) const override {
        std::vector<FigureView::Mark> marks;
        const bool heads = choice(by_) == QLatin1String("heads");
        const std::string name =
            heads ? "head " + std::to_string(selection().head) : "layer " + std::to_string(layer_of(selection().site));
        for (int p = 0; p < std::ssize(figure.panels); ++p) {
            const auto* curves = std::get_if<figures::Curves>(&figure.panels[static_cast<std::size_t>(p)].content);
            for (int c = 0; curves && c < std::ssize(curves->curves); ++c)
                if (curves->curves[static_cast<std::size_t>(c)].name == name) marks.push_back({p, c});
        }
        return marks;
    }

    void clicked(int panel, int row, int) override {
        const auto* shown = picture()->figure();
        if (!shown || panel >= std::ssize(shown->panels) || row < 0) return;
        const auto* curves = std::get_if<figures::Curves>(&shown->panels[static_cast<std::size_t>(panel)].content);
        if (!curves || row >= std::ssize(curves->curves)) return;
        const QString name = QString::fromStdString(curves->curves[static_cast<std::size_t>(row)].name);
        const std::int64_t number = name.section(QLatin1Char(' '), 1, 1).toLongLong();
        const bool heads = choice(by_) == QLatin1String("heads");
        for (const auto site : weighed_sites())
            if (layer_of(site) == (heads ? shown_layer() : number))
                desk().select_head(site, heads ? number : selection().head);
    }

    QString words(const figures::FigureData&) const override {
        return choice(by_) == QLatin1String("heads")
                   ? tr("Layer %1 · Click a curve to choose its head").arg(shown_layer())
                   : tr("Click a curve to choose its layer");
    }

private:
    std::int64_t layer_of(std::int64_t site) const { return study()->sites().at(static_cast<std::size_t>(site)).layer; }
    std::vector<std::int64_t> weighed_sites() const {
        std::vector<std::int64_t> sites;
        for (const auto site : measured_sites(*study()))
            if (study()->header().weighed(study()->sites()[static_cast<std::size_t>(site)])) sites.push_back(site);
        return sites;
    }
    /// The selected layer, or of those that have branches the first.
    std::int64_t shown_layer() const {
        const auto sites = weighed_sites();
        for (const auto site : sites)
            if (layer_of(site) == layer_of(selection().site)) return layer_of(site);
        return sites.empty() ? layer_of(selection().site) : layer_of(sites.front());
    }

    QComboBox* by_;
};

}  // namespace

extern const ViewKind kBranchWeights{
    "branch_weights",
    "Branch weights",
    "How much NAtS-L takes of softmax and of linear attention, token by token",
    [](Desk* desk, QWidget* parent) -> View* { return new BranchWeightsView(desk, parent); },
    ViewGroup::text,
    with_branches};

}  // namespace headscope::widgets

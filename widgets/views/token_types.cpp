// SPDX-License-Identifier: GPL-3.0-or-later
#include <QComboBox>

#include "widgets/views/recipe_view.h"
#include "widgets/views/views.h"

namespace headscope::widgets {
namespace {

/// Which tokens NAtS-L's heads give to softmax attention: by layer and head, by chunk of a layer, on the text of a
/// head.
class TokenTypesView final : public RecipeView {
public:
    TokenTypesView(Desk* desk, QWidget* parent) : RecipeView(desk, "token-types", parent) {
        of_ = add_choice(
            "of", tr("What is shown"),
            tr("The share of softmax chunks of every head; the type of each chunk of the selected layer; "
               "the text, coloured by the types of the selected head"),
            {{"heads", tr("Softmax fraction")}, {"chunks", tr("Chunks of the layer")}, {"text", tr("On text")}});
    }

protected:
    bool missing() override {
        if (!typed_sites().empty()) return false;
        show_notice(tr("No types of tokens"),
                    study()->header().type_chunk > 0
                        ? tr("No layer whose tokens have types was measured.")
                        : tr("Layers of NAtS-L alone choose between softmax and linear attention, chunk by chunk of "
                             "tokens. This model has none."));
        return true;
    }

    figures::FigureOptions options() const override {
        figures::FigureOptions options = RecipeView::options();
        const QString of = choice(of_);
        if (of == QLatin1String("heads")) return options;
        const Site& site = study()->sites().at(static_cast<std::size_t>(shown_site()));
        options.layer = site.layer;
        if (of == QLatin1String("text")) options.head = std::min<std::int64_t>(selection().head, site.heads - 1);
        return options;
    }

    bool can_join(const Study& other) const override {
        return RecipeView::can_join(other) && other.header().type_chunk > 0;
    }

    std::vector<FigureView::Mark> marks(const figures::FigureData&) const override { return {}; }

    void clicked(int, int row) override {
        const auto sites = typed_sites();
        if (row < 0 || choice(of_) == QLatin1String("text")) return;
        if (choice(of_) == QLatin1String("chunks")) {
            desk().select_head(shown_site(), row);
        } else if (row < std::ssize(sites)) {
            desk().select_head(sites[static_cast<std::size_t>(row)], selection().head);
        }
    }

    QString words(const figures::FigureData&) const override {
        if (choice(of_) == QLatin1String("heads")) return tr("Click a row: choose its layer");
        const QString layer = study()->site_name(shown_site());
        return choice(of_) == QLatin1String("chunks") ? tr("Layer %1 · click a row: choose its head").arg(layer)
                                                      : tr("Layer %1, head %2").arg(layer).arg(selection().head);
    }

private:
    /// The recipe's rows, in its order.
    std::vector<std::int64_t> typed_sites() const {
        std::vector<std::int64_t> sites;
        if (study()->header().type_chunk == 0) return sites;
        for (const auto site : measured_sites(*study()))
            if (study()->sites()[static_cast<std::size_t>(site)].branch == "linear") sites.push_back(site);
        return sites;
    }

    /// The linear branch of the selected layer; of a layer that has none, that of the first which does.
    std::int64_t shown_site() const {
        const auto sites = typed_sites();
        const auto layer = [&](std::int64_t site) { return study()->sites().at(static_cast<std::size_t>(site)).layer; };
        for (const auto site : sites)
            if (layer(site) == layer(selection().site)) return site;
        return sites.front();
    }

    QComboBox* of_;
};

}  // namespace

extern const ViewKind kTokenTypes{
    "token_types", "Token types", "Which tokens NAtS-L's heads give to softmax attention",
    [](Desk* desk, QWidget* parent) -> View* { return new TokenTypesView(desk, parent); }};

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#include <QComboBox>
#include <QStringList>

#include "widgets/desk/presence.h"
#include "widgets/views/recipe_view.h"
#include "widgets/views/views.h"

namespace headscope::widgets {
namespace {

/// What is added to scores by distance: learned biases, slopes, buckets.
class BiasView final : public RecipeView {
public:
    BiasView(Desk* desk, QWidget* parent) : RecipeView(desk, "bias", parent) {
        of_ = add_choice(
            "of", tr("Layers shown"), tr("Every layer, the selected one, or the selected head in each"),
            {{"layers", tr("All layers")}, {"layer", tr("The selected layer")}, {"head", tr("One head by layer")}});
        distance_ = add_choice("distance", tr("Distance"), tr("The axis of distances"),
                               {{"logarithmic", tr("Logarithmic")}, {"linear", tr("Linear")}});
    }

protected:
    bool missing() override {
        if (has_biases(*study())) return false;
        show_notice(tr("No bias by distance"),
                    tr("Lazy Attention learns a bias for each distance between query and key, ALiBi has a slope, T5 a "
                       "few buckets. This model has none of these, or an older version made the analysis."));
        return true;
    }

    figures::FigureOptions options() const override {
        figures::FigureOptions options;  // the same for every text
        const QString of = choice(of_);
        if (of == QLatin1String("layer")) options.layer = layer_of(selection().site);
        if (of == QLatin1String("head")) options.head = selection().head;
        if (choice(distance_) == QLatin1String("linear")) options.distance = figures::ScaleKind::linear;
        return options;
    }

    bool can_join(const Study& other) const override { return has_biases(other); }

    std::vector<FigureView::Mark> marks(const figures::FigureData& figure) const override {
        std::vector<FigureView::Mark> marks;
        const std::string head = "head " + std::to_string(selection().head);
        for (int p = 0; p < std::ssize(figure.panels); ++p) {
            const auto& panel = figure.panels[static_cast<std::size_t>(p)];
            const auto [first, last] = layers_of(panel);
            const std::int64_t layer = layer_of(selection().site);
            const auto* curves = std::get_if<figures::Curves>(&panel.content);
            if (!curves || layer < first || layer > last) continue;
            for (int c = 0; c < std::ssize(curves->curves); ++c)
                if (curves->curves[static_cast<std::size_t>(c)].name == head) marks.push_back({p, c});
        }
        return marks;
    }

    void clicked(int panel, int row, int) override {
        const auto* shown = picture()->figure();
        if (!shown || panel >= std::ssize(shown->panels) || row < 0) return;
        const auto& drawn = shown->panels[static_cast<std::size_t>(panel)];
        const auto* curves = std::get_if<figures::Curves>(&drawn.content);
        if (!curves || row >= std::ssize(curves->curves)) return;
        const QString name = QString::fromStdString(curves->curves[static_cast<std::size_t>(row)].name);
        const std::int64_t head = name.section(QLatin1Char(' '), 1, 1).toLongLong();
        const auto [first, last] = layers_of(drawn);
        const std::int64_t own = layer_of(selection().site);
        if (own >= first && own <= last) return desk().select_head(selection().site, head);
        for (const auto site : measured_sites(*study()))
            if (layer_of(site) == first) return desk().select_head(site, head);
    }

    QString words(const figures::FigureData&) const override {
        return tr("Above 0 raises the scores at that distance · Click a curve to choose its head");
    }

private:
    static bool has_biases(const Study& study) { return study.header().bias_window > 0 || study.header().has_slopes; }
    std::int64_t layer_of(std::int64_t site) const { return study()->sites().at(static_cast<std::size_t>(site)).layer; }
    /// Of a title: "Layer 3", "Encoder layers 0 to 5 · name"; without one the selected layer.
    std::pair<std::int64_t, std::int64_t> layers_of(const figures::Panel& panel) const {
        const QStringList words = QString::fromStdString(panel.title).split(QLatin1Char(' '));
        for (int at = 0; at + 1 < words.size(); ++at) {
            if (!words[at].startsWith(QLatin1String("layer"), Qt::CaseInsensitive)) continue;
            const std::int64_t first = words[at + 1].section(QLatin1Char(','), 0, 0).toLongLong();
            const bool several = at + 3 < words.size() && words[at + 2] == QLatin1String("to");
            return {first, several ? words[at + 3].section(QLatin1Char(','), 0, 0).toLongLong() : first};
        }
        const std::int64_t own = layer_of(selection().site);
        return {own, own};
    }

    QComboBox *of_, *distance_;
};

}  // namespace

extern const ViewKind kBias{"bias",
                            "Bias",
                            "What is added to scores by the distance of query and key",
                            [](Desk* desk, QWidget* parent) -> View* { return new BiasView(desk, parent); },
                            ViewGroup::layers,
                            with_biases};

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/logits.h"

#include "widgets/desk/presence.h"
#include "widgets/text/banner.h"

namespace headscope::widgets {
namespace {

using figures::FigureOptions;

const RecipePage kScoresPage{
    "scores",
    {{"by",
      "Rows",
      "A ridge for each layer, for each head of the selected layer, or for the selected head in each layer",
      {{"layers", "By layer"},
       {"heads", "Heads of the layer",
        [](FigureOptions& options, const Study& study, const Selection& selection) {
            options.layer = study.sites().at(static_cast<std::size_t>(selection.site)).layer;
        }},
       {"head", "One head by layer",
        [](FigureOptions& options, const Study&, const Selection& selection) { options.head = selection.head; }}}},
     {"stage",
      "Before or after the softmax",
      "Scores before the softmax, weights after it, or both side by side",
      {{"before", "Before the softmax"},
       {"after", "After the softmax",
        [](FigureOptions& options, const Study& study, const Selection&) {
            if (study.has_maps()) options.stage = figures::Stage::after;
        }},
       {"both", "Before and after", [](FigureOptions& options, const Study& study, const Selection&) {
            if (study.has_maps()) options.stage = figures::Stage::both;
        }}}}}};

}  // namespace

LogitsView::LogitsView(Desk* desk, QWidget* parent) : RecipeView(desk, kScoresPage, parent) {}

bool LogitsView::after() const {
    return choice(1) != QLatin1String("before");
}

void LogitsView::refresh() {
    banner()->set({});
    if (study() && after() && !study()->has_maps()) {
        banner()->set(tr("Weights after the softmax need maps, which were not recorded. Scores are shown."),
                      tr("Run again with maps"), [this] {
                          if (!study()) return;
                          RunRequest wish;
                          wish.study = study()->id();
                          wish.maps = true;
                          Q_EMIT desk().run_wanted(wish);
                      });
    }
    RecipeView::refresh();
}

bool LogitsView::can_join(const Study& other) const {
    return RecipeView::can_join(other) && (other.has_maps() || !after() || !study() || !study()->has_maps());
}

/// The selected row in words, with its outliers, of each stage that is shown.
QString LogitsView::words(const figures::FigureData& figure) const {
    QStringList words;
    for (const FigureMark& mark : picture()->marks()) {
        const auto& panel = figure.panels.at(static_cast<std::size_t>(mark.panel));
        if (panel.subject.analysis == 0) words << row_text(panel, mark.row);
    }
    return words.isEmpty() ? RecipeView::words(figure) : words.join(QStringLiteral("   |   "));
}

extern const ViewKind kLogits{"logits",
                              "Scores",
                              "How large attention scores are, layer by layer, and what the softmax makes of them",
                              [](Desk* desk, QWidget* parent) -> View* { return new LogitsView(desk, parent); },
                              ViewGroup::distributions,
                              with_scores};

}  // namespace headscope::widgets

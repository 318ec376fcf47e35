// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/logits.h"

#include <QComboBox>
#include <algorithm>

#include "widgets/desk/presence.h"
#include "widgets/text/banner.h"

namespace headscope::widgets {

LogitsView::LogitsView(Desk* desk, QWidget* parent) : RecipeView(desk, "scores", parent) {
    by_ = add_choice(
        "by", tr("Rows"),
        tr("A ridge for each layer, for each head of the selected layer, or for the "
           "selected head in each layer"),
        {{"layers", tr("By layer")}, {"heads", tr("Heads of the layer")}, {"head", tr("One head by layer")}});
    stage_ = add_choice(
        "stage", tr("Before or after the softmax"),
        tr("Scores before the softmax, weights after it, or both side by side"),
        {{"before", tr("Before the softmax")}, {"after", tr("After the softmax")}, {"both", tr("Before and after")}});
}

void LogitsView::refresh() {
    banner()->set({});
    if (study() && choice(stage_) != QLatin1String("before") && !study()->has_maps()) {
        banner()->set(tr("Weights after the softmax need maps, which were not recorded. Scores are shown."),
                      tr("Run again with maps"), [this] {
                          if (!study()) return;
                          RunWish wish;
                          wish.study = study()->id();
                          wish.maps = true;
                          Q_EMIT desk().run_wanted(wish);
                      });
    }
    RecipeView::refresh();
}

figures::FigureOptions LogitsView::options() const {
    figures::FigureOptions options = RecipeView::options();
    if (study()->has_maps() && choice(stage_) != QLatin1String("before"))
        options.stage = choice(stage_) == QLatin1String("after") ? figures::Stage::after : figures::Stage::both;
    if (choice(by_) == QLatin1String("heads"))
        options.layer = study()->sites().at(static_cast<std::size_t>(selection().site)).layer;
    if (choice(by_) == QLatin1String("head")) options.head = selection().head;
    return options;
}

bool LogitsView::can_join(const Study& other) const {
    const bool after = choice(stage_) != QLatin1String("before") && study() && study()->has_maps();
    return RecipeView::can_join(other) && (other.has_maps() || !after);
}

std::vector<LogitsView::Place> LogitsView::rows() const {
    const bool heads = choice(by_) == QLatin1String("heads");
    std::vector<Place> rows;
    for (const auto site : heads ? sites_of_layer(*study(), selection().site) : measured_sites(*study())) {
        if (!heads) rows.push_back({site, -1});
        for (std::int64_t h = 0; heads && h < study()->sites().at(static_cast<std::size_t>(site)).heads; ++h)
            rows.push_back({site, h});
    }
    return rows;
}

int LogitsView::selected_row() const {
    const auto rows = this->rows();
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (rows[i].site == selection().site && (rows[i].head < 0 || rows[i].head == selection().head))
            return static_cast<int>(i);
    return -1;
}

std::vector<FigureView::Mark> LogitsView::marks(const figures::FigureData& figure) const {
    const int row = selected_row();
    std::vector<FigureView::Mark> marks;
    for (int p = 0; row >= 0 && p < std::ssize(figure.panels); ++p) marks.push_back({p, row});
    return marks;
}

void LogitsView::clicked(int, int row, int) {
    const auto rows = this->rows();
    if (row < 0 || row >= std::ssize(rows)) return;
    const Place place = rows[static_cast<std::size_t>(row)];
    desk().select_head(place.site, place.head < 0 ? selection().head : place.head);
}

/// The selected row in words, with its outliers, of each stage that is shown.
QString LogitsView::words(const figures::FigureData& figure) const {
    const int row = selected_row();
    if (row < 0) return RecipeView::words(figure);
    const auto stages = figure.panels.size() > shown_studies().size() ? 2U : 1U;
    QStringList words;
    for (std::size_t p = 0; p < std::min<std::size_t>(stages, figure.panels.size()); ++p)
        words << row_text(figure.panels[p], row);
    return words.join(QStringLiteral("   |   "));
}

extern const ViewKind kLogits{"logits",
                              "Scores",
                              "How large attention scores are, layer by layer, and what the softmax makes of them",
                              [](Desk* desk, QWidget* parent) -> View* { return new LogitsView(desk, parent); },
                              ViewGroup::distributions,
                              with_scores};

}  // namespace headscope::widgets

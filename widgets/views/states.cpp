// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/states.h"
#include "widgets/desk/presence.h"

#include <QComboBox>
#include <QStringList>

namespace headscope::widgets {

StatesView::StatesView(Desk* desk, QWidget* parent) : RecipeView(desk, "states", parent) {
    by_ = add_choice(
        "by", tr("Curves"),
        tr("Draw a curve for each layer (mean over its heads), for each head of the selected layer, or for the "
           "selected head in each layer"),
        {{"layers", tr("By layer")}, {"heads", tr("Heads of the layer")}, {"head", tr("One head by layer")}});
}

bool StatesView::missing() {
    if (study()->header().record.states) return false;
    const bool running = study()->running();
    show_notice(tr("States were not recorded"),
                running ? tr("Norms and variances of queries, keys, values and hidden states are recorded on request. "
                             "You can repeat this run with states when it has ended.")
                        : tr("Norms and variances of queries, keys, values and hidden states are recorded on request."),
                running ? QString() : tr("Run again with states"), [this] {
                    if (!study()) return;
                    RunWish wish;
                    wish.study = study()->id();
                    wish.states = true;
                    Q_EMIT desk().run_wanted(wish);
                });
    return true;
}

figures::FigureOptions StatesView::options() const {
    figures::FigureOptions options = RecipeView::options();
    if (choice(by_) == QLatin1String("heads"))
        options.layer = study()->sites().at(static_cast<std::size_t>(selection().site)).layer;
    if (choice(by_) == QLatin1String("head")) options.head = selection().head;
    return options;
}

bool StatesView::can_join(const Study& other) const {
    return RecipeView::can_join(other) && other.header().record.states;
}

/// Of a curve's name, "head 3" or a site's title: the head or the site.
std::optional<std::int64_t> StatesView::member(const std::string& name) const {
    if (name.starts_with("head ")) return QString::fromStdString(name).section(QLatin1Char(' '), 1, 1).toLongLong();
    const QString title = QString::fromStdString(name);
    for (const auto site : measured_sites(*study()))
        if (study()->site_title(site) == title) return site;
    return std::nullopt;
}

std::vector<FigureView::Mark> StatesView::marks(const figures::FigureData& figure) const {
    // Among heads the head is marked (keys and values have their group's first one), else the layer.
    const bool heads = choice(by_) == QLatin1String("heads");
    const Site& site = study()->sites()[static_cast<std::size_t>(selection().site)];
    const std::int64_t group = std::max(1, site.heads / std::max(1, site.key_value_heads));
    std::vector<FigureView::Mark> marks;
    for (int p = 0; p < std::ssize(figure.panels); ++p) {
        const auto* curves = std::get_if<figures::Curves>(&figure.panels[static_cast<std::size_t>(p)].content);
        for (int c = 0; curves && c < std::ssize(curves->curves); ++c) {
            const auto what = member(curves->curves[static_cast<std::size_t>(c)].name);
            if (!what) continue;
            const std::string& title = figure.panels[static_cast<std::size_t>(p)].title;
            const bool shared = title.starts_with("Key") || title.starts_with("Value");
            const std::int64_t head = shared ? selection().head / group * group : selection().head;
            if (*what == (heads ? head : selection().site)) marks.push_back({p, c});
        }
    }
    return marks;
}

void StatesView::clicked(int panel, int row, int) {
    const auto* shown = picture()->figure();
    if (!shown || panel >= std::ssize(shown->panels) || row < 0) return;
    const auto* curves = std::get_if<figures::Curves>(&shown->panels[static_cast<std::size_t>(panel)].content);
    if (!curves || row >= std::ssize(curves->curves)) return;
    const auto what = member(curves->curves[static_cast<std::size_t>(row)].name);
    if (!what) return;
    if (choice(by_) == QLatin1String("heads"))
        desk().select_head(selection().site, *what);
    else
        desk().select_head(*what, selection().head);
}

QString StatesView::words(const figures::FigureData&) const {
    return choice(by_) == QLatin1String("heads")
               ? tr("%1; the selected head's curves are bold. Click a curve to choose its head")
                     .arg(study()->site_heading(selection().site))
               : tr("The selected layer's curves are bold. Click a curve to choose its layer");
}

extern const ViewKind kStates{"states",
                              "States",
                              "Which positions have large or small queries, keys, values and hidden states",
                              [](Desk* desk, QWidget* parent) -> View* { return new StatesView(desk, parent); },
                              ViewGroup::layers,
                              with_states};

}  // namespace headscope::widgets

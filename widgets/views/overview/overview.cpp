// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/overview/overview.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QJsonArray>
#include <QLabel>
#include <QMenu>
#include <QScrollArea>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>
#include <array>
#include <cmath>

#include "widgets/desk/ask_shelf.h"
#include "widgets/desk/head_set_store.h"
#include "widgets/desk/presence.h"
#include "widgets/text/line_label.h"
#include "widgets/views/overview/overview_grid.h"
#include "widgets/views/overview/overview_panel.h"
#include "widgets/views/overview/overview_scale.h"
#include "widgets/views/overview/overview_sets.h"
#include "widgets/views/overview/overview_strip.h"
#include "widgets/views/views.h"

namespace headscope::widgets {
namespace {

using figures::Normalise;

/// In the order of the box: as the command line calls them, on screen, what it means.
struct ScaleChoice {
    Normalise normalise;
    const char *name, *title, *tip;
};
constexpr std::array kScaleChoices{
    ScaleChoice{Normalise::absolute, "absolute", QT_TRANSLATE_NOOP("Overview", "Absolute"),
                QT_TRANSLATE_NOOP("Overview", "Values as measured, on one linear scale")},
    ScaleChoice{Normalise::minmax, "minmax", QT_TRANSLATE_NOOP("Overview", "Min–max"),
                QT_TRANSLATE_NOOP("Overview", "Scale values by the range over all layers and heads")},
    ScaleChoice{
        Normalise::layer, "layer", QT_TRANSLATE_NOOP("Overview", "Per layer"),
        QT_TRANSLATE_NOOP("Overview", "Scale values by the range within each layer: only heads of one layer compare")},
};

QString text_of(std::string_view text) {
    return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

QString tip_of(const workspace::ColumnWords& words) {
    const QString unit = words.unit.empty() ? QString() : QStringLiteral(" (%1)").arg(text_of(words.unit));
    return Overview::tr("<b>%1</b>%2<br>%3<br>Source: %4")
        .arg(text_of(words.title).toHtmlEscaped(), unit, text_of(words.definition).toHtmlEscaped(),
             text_of(words.source).toHtmlEscaped());
}

}  // namespace

Overview::Overview(Desk* desk, QWidget* parent)
    : View(desk, parent),
      measures_(new QComboBox(this)),
      scales_(new QComboBox(this)),
      title_(new QLabel(this)),
      pointed_(new LineLabel(this)),
      grid_(new HeadGrid),
      bar_(new ScaleBar(this)),
      panel_(new TablePanel(desk, this)),
      strip_(new HeadStrip(this)),
      splitter_(new QSplitter(Qt::Horizontal, this)),
      menu_(new QMenu(this)),
      mark_menu_(new QMenu(this)),
      switch_menu_(new QMenu(this)),
      sets_(new HeadSetMenu(desk, strip_->edit(), this)) {
    splitter_->setObjectName(QStringLiteral("splitter"));
    splitter_->addWidget(make_left());
    splitter_->addWidget(panel_);
    splitter_->setChildrenCollapsible(false);
    splitter_->setSizes({520, 480});
    splitter_->setHandleWidth(9);
    auto* column = new QVBoxLayout(content());
    column->setContentsMargins(8, 8, 8, 8);
    column->addWidget(splitter_, 1);
    column->addWidget(strip_);
    strip_->set_menus(mark_menu_, switch_menu_);

    connect(measures_, &QComboBox::activated, this, [this] { set_measure(measures_->currentData().toString()); });
    connect(scales_, &QComboBox::activated, this,
            [this](int index) { set_normalise(kScaleChoices.at(static_cast<std::size_t>(index)).normalise); });
    connect(grid_, &HeadGrid::chosen, this, &Overview::choose);
    connect(grid_, &HeadGrid::opened, this, &Overview::open);
    connect(grid_, &HeadGrid::stepped, this, [this](int sites, int heads) { this->desk().step(sites, heads); });
    connect(grid_, &HeadGrid::pointed, this, &Overview::show_pointed);
    connect(grid_, &HeadGrid::menu_wanted, this, [this](qint64, qint64, const QPoint& place) { popup(place); });
    connect(panel_, &TablePanel::menu_wanted, this, &Overview::popup);
    connect(panel_, &TablePanel::filtered, this, [this] {
        // A filter that cannot be parsed (yet) leaves the selection.
        if (panel_->filter()->error().isEmpty()) this->desk().set_head_filter(panel_->filter()->text().trimmed());
        show_grid();
    });
    connect(desk, &Desk::head_filter_changed, this, [this] {
        const QString text = this->desk().head_filter();
        if (panel_->filter()->text().trimmed() != text) panel_->filter()->set_text(text);
    });
    connect(panel_, &TablePanel::state_changed, this, &View::state_changed);
    connect(panel_, &TablePanel::chosen, this, [this](qint64 row) {
        const auto& place = table_->rows.at(static_cast<std::size_t>(row));
        choose(place.site, place.head);
    });
    connect(panel_, &TablePanel::opened, this, [this](qint64 row) {
        const auto& place = table_->rows.at(static_cast<std::size_t>(row));
        open(place.site, place.head);
    });
    connect(splitter_, &QSplitter::splitterMoved, this, &View::state_changed);
    connect(strip_, &HeadStrip::map_wanted, this, [this] { open(selection().site, selection().head); });
    connect(strip_, &HeadStrip::run_wanted, this, &Overview::run_again);
    connect(strip_, &HeadStrip::clear_wanted, this, [this] {
        switched_.clear();
        show_switched();
    });
    connect(&desk->head_sets(), &HeadSetStore::changed, this, &Overview::refresh_later);
    connect(&desk->asks(), &AskShelf::changed, this, &Overview::refresh_later);
    connect(desk, &Desk::column_wanted, this, &Overview::want_measure);
    connect(sets_, &HeadSetMenu::select_wanted, this, &Overview::select);
    connect(grid_, &HeadGrid::mark_wanted, this, [this] { sets_->toggle(heads_meant()); });
    connect(panel_, &TablePanel::mark_wanted, this, [this] { sets_->toggle(heads_meant()); });
    connect(mark_menu_, &QMenu::aboutToShow, this, [this] {
        mark_menu_->clear();
        sets_->fill(mark_menu_, heads_meant());
    });
    connect(switch_menu_, &QMenu::aboutToShow, this, [this] {
        switch_menu_->clear();
        fill_switch_menu(switch_menu_);
    });
    make_commands();
}

QWidget* Overview::make_left() {
    measures_->setObjectName(QStringLiteral("measure"));
    measures_->setAccessibleName(tr("Measure"));
    measures_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    measures_->setMinimumContentsLength(14);
    measures_->setMaxVisibleItems(30);
    scales_->setObjectName(QStringLiteral("scale"));
    scales_->setAccessibleName(tr("Color scale"));
    scales_->setToolTip(tr("Scale of the colors"));
    for (const ScaleChoice& choice : kScaleChoices) {
        scales_->addItem(tr(choice.title), QLatin1String(choice.name));
        scales_->setItemData(scales_->count() - 1, tr(choice.tip), Qt::ToolTipRole);
    }
    title_->setObjectName(QStringLiteral("definition"));
    title_->setWordWrap(true);
    title_->setTextFormat(Qt::RichText);
    title_->setAlignment(Qt::AlignLeft | Qt::AlignTop);
    pointed_->setObjectName(QStringLiteral("pointed"));
    pointed_->setAccessibleName(tr("The head under the pointer"));
    pointed_->setTextFormat(Qt::PlainText);
    pointed_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    auto* choices = new QHBoxLayout;
    choices->addWidget(measures_, 2);
    choices->addWidget(scales_, 1);
    auto* area = new QScrollArea(this);
    area->setObjectName(QStringLiteral("heat_area"));
    area->setWidget(grid_);
    area->setWidgetResizable(true);
    area->setFrameShape(QFrame::NoFrame);
    area->setFocusPolicy(Qt::NoFocus);
    auto* left = new QWidget(this);
    auto* column = new QVBoxLayout(left);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(6);
    column->addLayout(choices);
    column->addWidget(title_);
    // The map and its scale are one card.
    auto* card = new QVBoxLayout;
    card->setSpacing(0);
    card->addWidget(area, 1);
    card->addWidget(bar_);
    column->addLayout(card, 1);
    column->addWidget(pointed_);
    return left;
}

void Overview::refresh() {
    if (notice_without_study()) {
        table_.reset();
        return;
    }
    Study& now = *study();
    const auto heads = desk().heads(now, selection().sequence);
    if (notice_for(heads)) return;
    show_content();
    if (study_ != now.id()) {
        study_ = now.id();
        table_.reset();
        switched_.clear();
        show_switched();
    }
    const std::vector<bool> done = sites_done();
    if (heads.value != table_ || done != done_) {
        table_ = heads.value;
        done_ = done;
        first_.assign(now.sites().size(), 0);
        for (std::size_t row = table_->rows.size(); row-- > 0;)
            first_[static_cast<std::size_t>(table_->rows[row].site)] = row;
        fill_measures();
        panel_->set_table(table_, done_);
    }
    QStringList notes;
    if (!selection().sequence) notes << tr("mean ± standard deviation of %1 sequences").arg(now.sequences());
    const auto finished = std::count(done_.begin(), done_.end(), true);
    if (finished < std::ssize(done_))
        notes << (now.running() ? tr("%1 of %2 layers so far") : tr("stopped after %1 of %2 layers"))
                     .arg(finished)
                     .arg(done_.size());
    panel_->set_note(notes.join(QStringLiteral(" · ")));
    panel_->set_current(row_of(selection().site, selection().head));
    grid_->set_theme(desk().theme());
    bar_->set_theme(desk().theme());
    show_grid();
    show_head();
}

Study* Overview::shown() const {
    Study* current = study();
    return table_ && current && current->id() == study_ ? current : nullptr;
}

std::vector<bool> Overview::sites_done() const {
    const Study& now = *study();
    std::vector<bool> done;
    for (std::int64_t site = 0; site < std::ssize(now.sites()); ++site) {
        bool any = false;
        // All sequences: a mean over those that are there.
        for (std::int64_t s = selection().sequence.value_or(0); s < now.sequences() && !any; ++s) {
            any = now.site_done(s, site);
            if (selection().sequence) break;
        }
        done.push_back(any);
    }
    return done;
}

void Overview::fill_measures() {
    const QString before = measure();
    QStringList names;
    for (const auto& column : table_->columns) names << QString::fromStdString(column);
    bool same = names.size() == measures_->count();
    for (int i = 0; same && i < measures_->count(); ++i) same = measures_->itemData(i).toString() == names[i];
    if (!same) {
        measures_->clear();
        for (const QString& name : names) measures_->addItem(name, name);
    }
    for (int i = 0; i < measures_->count(); ++i) {  // also of equal names: another file may add them now
        const workspace::ColumnWords about = table_->words(names[i].toStdString());
        measures_->setItemText(i, text_of(about.title));
        if (!about.definition.empty()) measures_->setItemData(i, tip_of(about), Qt::ToolTipRole);
    }
    int index = wanted_measure_.isEmpty() ? -1 : measures_->findData(wanted_measure_);
    if (index < 0) index = measures_->findData(before);
    if (index < 0) index = std::max(0, measures_->findData(QStringLiteral("sink")));
    measures_->setCurrentIndex(index);
    if (measure() == wanted_measure_) wanted_measure_.clear();
}

void Overview::show_grid() {
    const Study* study = shown();
    if (!study || measure().isEmpty()) return;
    const auto column = table_->column(measure().toStdString());
    if (!column) return;
    cells_ = heat_cells(*table_, *column, normalise());
    const workspace::ColumnWords about = table_->words(table_->columns[*column]);
    GridContent content;
    content.cells = cells_;
    content.of_layer = about.of_layer;
    for (std::size_t site = 0; site < done_.size(); ++site) {
        const Site& place = study->sites()[site];
        content.rows.push_back({study->site_name(static_cast<std::int64_t>(site)), place.heads, group_of(place),
                                first_[site], place.has_matrix || place.has_implicit, done_[site]});
    }
    for (const bool matches : panel_->filter()->matches()) content.dimmed.push_back(!matches);
    const workspace::HeadSets sets = desk().head_sets().of(*study);
    if (!sets.marked().empty())
        for (const auto& row : table_->rows) content.marked.push_back(sets.is_marked(workspace::key_of(row)));
    panel_->set_marked(content.marked);
    if (!switched_.empty()) {
        content.off.assign(table_->rows.size(), false);
        for (const auto& one : switched_)
            if (const auto row = row_of(one.site, one.head)) content.off[*row] = true;
    }
    grid_->set_content(std::move(content));
    grid_->set_selected(selection().site, selection().head);
    bar_->set_scale(cells_, normalise(), text_of(about.unit));
    const QString title = QStringLiteral("<b>%1</b>").arg(text_of(about.title).toHtmlEscaped());
    const QString definition = text_of(about.definition).toHtmlEscaped();
    measures_->setToolTip(definition.isEmpty() ? measure() : tip_of(about));
    title_->setText(definition.isEmpty() ? title : QStringLiteral("%1 — %2").arg(title, definition));
    show_pointed(-1, -1);
}

std::optional<std::size_t> Overview::row_of(std::int64_t site, std::int64_t head) const {
    if (!table_ || site < 0 || site >= std::ssize(first_)) return std::nullopt;
    const std::size_t row = first_[static_cast<std::size_t>(site)] + static_cast<std::size_t>(head);
    if (row >= table_->rows.size() || table_->rows[row].site != site || table_->rows[row].head != head)
        return std::nullopt;
    return row;
}

void Overview::choose(std::int64_t site, std::int64_t head) {
    desk().select_head(site, head);
}

void Overview::open(std::int64_t site, std::int64_t head) {
    desk().select_head(site, head);
    Q_EMIT desk().view_wanted(QStringLiteral("map"));
}

QString Overview::measure() const {
    return measures_->currentData().toString();
}

Normalise Overview::normalise() const {
    return kScaleChoices.at(static_cast<std::size_t>(std::max(0, scales_->currentIndex()))).normalise;
}

void Overview::set_measure(const QString& name) {
    const int index = measures_->findData(name);
    if (index < 0) return;
    measures_->setCurrentIndex(index);
    wanted_measure_.clear();
    panel_->show_measure(name);
    show_grid();
    Q_EMIT state_changed();
}

void Overview::want_measure(const QString& name) {
    if (measures_->findData(name) >= 0)
        set_measure(name);
    else
        wanted_measure_ = name;
}

void Overview::set_normalise(Normalise normalise) {
    for (std::size_t i = 0; i < kScaleChoices.size(); ++i)
        if (kScaleChoices[i].normalise == normalise) scales_->setCurrentIndex(static_cast<int>(i));
    show_grid();
    Q_EMIT state_changed();
}

QJsonObject Overview::state() const {
    QJsonObject state = panel_->state();
    state[QStringLiteral("measure")] = wanted_measure_.isEmpty() ? measure() : wanted_measure_;
    state[QStringLiteral("scale")] = scales_->currentData().toString();
    QJsonArray sizes;
    for (const int size : splitter_->sizes()) sizes.append(size);
    state[QStringLiteral("splitter")] = sizes;
    return state;
}

void Overview::restore(const QJsonObject& state) {
    panel_->restore(state);
    desk().set_head_filter(panel_->filter()->text().trimmed());  // other views know it before this one has a table
    const QString scale = state[QStringLiteral("scale")].toString();
    for (const ScaleChoice& choice : kScaleChoices)
        if (scale == QLatin1String(choice.name)) set_normalise(choice.normalise);
    const QString wanted = state[QStringLiteral("measure")].toString();
    if (!wanted.isEmpty()) want_measure(wanted);
    const QJsonArray sizes = state[QStringLiteral("splitter")].toArray();
    if (sizes.size() == 2 && sizes[0].toInt() > 0 && sizes[1].toInt() > 0)
        splitter_->setSizes({sizes[0].toInt(), sizes[1].toInt()});
    refresh_later();
}

std::optional<FigureRequest> Overview::figure() const {
    if (!shown() || measure().isEmpty()) return std::nullopt;
    if (const workspace::AddedColumn* added = table_->find_added(measure().toStdString())) {
        FigureRequest of_file{added->recipe, {}, {}};
        of_file.paths = QStringList{QString::fromStdString(added->path)};
        of_file.note = tr("The figure has all scores of the ask file, on a scale of their own.");
        return of_file;
    }
    FigureRequest wish;
    wish.studies = {study_};
    wish.recipe = "indicators";
    wish.options.indicator = measure().toStdString();
    wish.options.normalise = normalise();
    wish.options.sequence = selection().sequence;
    wish.options.all_sequences = !selection().sequence;
    if (!desk().head_filter().isEmpty()) wish.note = tr("Heads that do not match the filter are drawn as well.");
    return named(wish);
}

const ViewKind kOverview{"overview",
                         "Overview",
                         "Every head with every measure: which ones stand out?",
                         [](Desk* desk, QWidget* parent) -> View* { return new Overview(desk, parent); },
                         ViewGroup::heads,
                         with_sites};

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
// All heads of a comparison. Its words: heads_page_words.cpp.
#include "widgets/views/compare/heads_page.h"

#include <QComboBox>
#include <QHeaderView>
#include <QJsonObject>
#include <QLabel>
#include <QScrollArea>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "core/workspace/measures.h"
#include "widgets/fitted_columns.h"
#include "widgets/plain_controls.h"
#include "widgets/plots/colour_map.h"
#include "widgets/plots/ticks.h"
#include "widgets/table_copy.h"
#include "widgets/text/banner.h"
#include "widgets/views/overview/overview_grid.h"
#include "widgets/views/overview/overview_scale.h"

namespace headscope::workspace {

inline std::int64_t bytes_of(const HeadChanges& changes) {
    return static_cast<std::int64_t>((changes.difference.size() + changes.score.size() * 3) * sizeof(double));
}

}  // namespace headscope::workspace

namespace headscope::widgets {
namespace {

constexpr double kNoHeadCell = std::numeric_limits<double>::quiet_NaN();
constexpr int kNarrowHeads = 900;  ///< pixels: below, the list stands under the map

std::atomic<std::uint64_t> last_revision{0};  ///< of all such pages: they share the studies' caches

QString html(std::string_view text) {
    return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())).toHtmlEscaped();
}

HeatCells signed_cells(std::vector<double> values, bool has_sign) {
    HeatCells cells;
    cells.values = std::move(values);
    cells.format = number_format(cells.values);
    double most = 0;
    for (const double value : cells.values)
        if (std::isfinite(value)) most = std::max(most, std::abs(value));
    cells.scale.maximum = most > 0 ? most : 1;
    if (has_sign) {
        cells.scale.map = figures::ColourMap::diverging;
        cells.scale.minimum = -cells.scale.maximum;
    }
    cells.lowest = cells.scale.minimum;
    cells.highest = cells.scale.maximum;
    for (const double value : cells.values)
        cells.fractions.push_back(std::isfinite(value) ? fraction(cells.scale, value) : kNoHeadCell);
    return cells;
}

}  // namespace

CompareHeads::CompareHeads(Desk* desk, QWidget* parent) : QWidget(parent), desk_(desk) {
    make_widgets();
    connect(desk, &Desk::study_gone, this, [this] {
        if (sides_.open(*desk_)) return;
        sides_ = {};
        shown_ = {};
    });
    connect(measures_, &QComboBox::activated, this, [this] { set_measure(measures_->currentData().toString()); });
    connect(grid_, &HeadGrid::chosen, desk, [desk](qint64 site, qint64 head) { desk->select_head(site, head); });
    connect(grid_, &HeadGrid::stepped, desk, &Desk::step);
    connect(grid_, &HeadGrid::pointed, this, &CompareHeads::show_pointed);
    connect(grid_, &HeadGrid::opened, this, [this](qint64 site, qint64 head) {
        desk_->select_head(site, head);
        Q_EMIT opened();
    });
    const auto choose = [this](const QModelIndex& index) {
        if (updating_ || !index.isValid() || !shown_) return false;
        const auto& place = shown_.left->rows.at(model_->head_row(index.row()));
        desk_->select_head(place.site, place.head);
        return true;
    };
    connect(list_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, choose);
    connect(list_, &QTableView::clicked, this, choose);
    connect(list_, &QTableView::activated, this, [this, choose](const QModelIndex& index) {
        if (choose(index)) Q_EMIT opened();
    });
    connect(list_, &QTableView::doubleClicked, this, [this, choose](const QModelIndex& index) {
        if (choose(index)) Q_EMIT opened();
    });
}

void CompareHeads::make_widgets() {
    const auto label = [this](const char* name, bool rich = false) {
        auto* made = new QLabel(this);
        made->setObjectName(QLatin1String(name));
        made->setTextFormat(rich ? Qt::RichText : Qt::PlainText);
        made->setWordWrap(true);
        return made;
    };
    measures_ = new QComboBox(this);
    measures_->setObjectName(QStringLiteral("compare_measure"));
    measures_->setAccessibleName(tr("Measure"));
    measures_->setMaxVisibleItems(30);
    measures_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    measures_->setMinimumContentsLength(16);
    loss_ = label("compare_loss", true);
    switched_ = label("compare_switched");
    pointed_ = label("compare_pointed");
    list_title_ = label("compare_list_title");
    banner_ = new Banner(this);
    grid_ = new HeadGrid;
    grid_->setObjectName(QStringLiteral("compare_grid"));
    grid_->setAccessibleName(tr("Differences of layers and heads"));
    bar_ = new ScaleBar(this);
    auto* area = new QScrollArea(this);
    area->setWidget(grid_);
    area->setWidgetResizable(true);
    area->setFrameShape(QFrame::NoFrame);
    area->setFocusPolicy(Qt::NoFocus);
    auto* card = new QWidget(this);
    auto* map = new QVBoxLayout(card);
    map->setContentsMargins(0, 0, 0, 0);
    map->setSpacing(0);
    map->addWidget(measures_);
    map->addSpacing(4);
    map->addWidget(area, 1);
    map->addWidget(bar_);

    model_ = new ChangesModel(this);
    list_ = new QTableView(this);
    copy_rows_by_key(list_);
    list_->setObjectName(QStringLiteral("compare_list"));
    list_->setAccessibleName(tr("Heads that differ most"));
    list_->setModel(model_);
    list_->setSelectionBehavior(QAbstractItemView::SelectRows);
    list_->setSelectionMode(QAbstractItemView::SingleSelection);
    list_->setCornerButtonEnabled(false);
    style_table(list_);
    fitted_ = new FittedColumns(list_);
    fitted_->set_order({ChangesModel::head_column, ChangesModel::change_column, ChangesModel::measure_column,
                        ChangesModel::left_column, ChangesModel::right_column, ChangesModel::size_column});
    list_->setMinimumSize(140, 80);
    auto* listed = new QWidget(this);
    auto* rows = new QVBoxLayout(listed);
    rows->setContentsMargins(0, 0, 0, 0);
    rows->addWidget(list_title_);
    rows->addWidget(list_, 1);

    split_ = new QSplitter(Qt::Horizontal, this);
    split_->setObjectName(QStringLiteral("compare_split"));
    split_->addWidget(card);
    split_->addWidget(listed);
    split_->setChildrenCollapsible(false);
    split_->setHandleWidth(9);
    split_->setSizes({500, 500});
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(4);
    column->addWidget(banner_);
    column->addWidget(loss_);
    column->addWidget(switched_);
    column->addWidget(split_, 1);
    column->addWidget(pointed_);
}

void CompareHeads::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    split_->setOrientation(width() < kNarrowHeads && height() > width() ? Qt::Vertical : Qt::Horizontal);
}

bool CompareHeads::ask(const CompareSides& sides) {
    Study &left = *sides.left.study, &right = *sides.right.study;
    const auto before = left.heads(sides.left.sequence), after = right.heads(sides.right.sequence);
    for (const auto* reply : {&before, &after}) {
        if (!*reply && !reply->failure.isEmpty()) {
            pending_ = reply->failure;
            return false;
        }
    }
    pending_ = tr("Reading…");
    if (!before || !after) return false;
    if (before.value != asked_.left || after.value != asked_.right) {
        asked_ = {before.value, after.value, nullptr};
        revision_ = ++last_revision;
    }
    const auto changes = left.ask<workspace::HeadChanges>(
        "head changes " + std::to_string(revision_), -3, -3, [asked = asked_](const store::AnalysisFile&) {
            return std::make_shared<const workspace::HeadChanges>(workspace::head_changes(*asked.left, *asked.right));
        });
    if (!changes) {
        if (!changes.failure.isEmpty()) pending_ = changes.failure;
        // Keep the earlier comparison until then.
        return shown_ && changes.pending && sides == sides_;
    }
    shown_ = {asked_.left, asked_.right, changes.value};
    return true;
}

void CompareHeads::show_sides(const CompareSides& sides) {
    QString why;
    if (!same_shape(*sides.left.study, *sides.right.study, &why)) {
        shown_ = {};
        split_->hide();
        for (QLabel* label : {loss_, switched_, pointed_}) label->hide();
        const QString replaced = replaced_layers(*sides.left.study, *sides.right.study);
        return banner_->set(replaced.isEmpty() ? why : why + QLatin1Char(' ') + replaced);
    }
    if (!ask(sides)) {
        split_->hide();
        for (QLabel* label : {loss_, switched_, pointed_}) label->hide();
        return banner_->set(pending_);
    }
    sides_ = sides;
    split_->show();
    for (QLabel* label : {loss_, pointed_}) label->show();
    const auto done = [](const CompareSide& side, std::int64_t site) {
        for (std::int64_t s = side.sequence.value_or(0); s < side.study->sequences(); ++s) {
            if (side.study->site_done(s, site)) return true;
            if (side.sequence) break;
        }
        return false;
    };
    const auto& sites = sides.left.study->sites();
    done_.clear();
    for (std::int64_t site = 0; site < std::ssize(sites); ++site)
        done_.push_back(done(sides.left, site) && done(sides.right, site));
    first_.assign(sites.size(), 0);
    for (std::size_t row = shown_.left->rows.size(); row-- > 0;)
        first_[static_cast<std::size_t>(shown_.left->rows[row].site)] = row;
    off_left_ = workspace::switched_off_heads(sides.left.study->header());
    off_right_ = workspace::switched_off_heads(sides.right.study->header());
    fill_measures();
    grid_->set_theme(desk_->theme());
    bar_->set_theme(desk_->theme());
    show_grid();
    show_words(sides);
}

void CompareHeads::fill_measures() {
    const auto& names = shown_.changes->measures;
    const QString before = wanted_measure_.isNull() ? measures_->currentData().toString() : wanted_measure_;
    const bool first = measures_->count() == 0 && wanted_measure_.isNull();
    bool same = measures_->count() == static_cast<int>(names.size()) + 1;
    for (std::size_t i = 0; same && i < names.size(); ++i)
        same = measures_->itemData(static_cast<int>(i) + 1).toString().toStdString() == names[i];
    if (!same) {
        measures_->clear();
        measures_->addItem(tr("All measures together"), QString());
        measures_->setItemData(0,
                               tr("How much a head differs in all measures: each in standard deviations over all heads "
                                  "of both sides, then the root of the sum of squares"),
                               Qt::ToolTipRole);
        for (const std::string& name : names) {
            measures_->addItem(measure_title(name), QString::fromStdString(name));
            const workspace::Measure* about = workspace::find_measure(name);
            if (about)
                measures_->setItemData(measures_->count() - 1,
                                       QStringLiteral("<b>%1</b><br>%2<br>%3")
                                           .arg(html(about->title), html(about->definition), html(about->source)),
                                       Qt::ToolTipRole);
        }
    }
    const int index = measures_->findData(first ? QStringLiteral("sink") : before);
    measures_->setCurrentIndex(std::max(0, index));
    wanted_measure_ = QString();
}

QString CompareHeads::measure() const {
    return wanted_measure_.isNull() ? measures_->currentData().toString() : wanted_measure_;
}

void CompareHeads::set_measure(const QString& name) {
    const int index = measures_->findData(name);
    if (index < 0) return;
    measures_->setCurrentIndex(index);
    if (shown_) show_grid();
    Q_EMIT state_changed();
}

std::optional<std::size_t> CompareHeads::measure_index() const {
    const int index = measures_->currentIndex();
    return index > 0 ? std::optional(static_cast<std::size_t>(index - 1)) : std::nullopt;
}

std::optional<std::size_t> CompareHeads::row_of(std::int64_t site, std::int64_t head) const {
    if (!shown_ || site < 0 || site >= std::ssize(first_)) return std::nullopt;
    const std::size_t row = first_[static_cast<std::size_t>(site)] + static_cast<std::size_t>(head);
    const auto& rows = shown_.left->rows;
    if (row >= rows.size() || rows[row].site != site || rows[row].head != head) return std::nullopt;
    return row;
}

void CompareHeads::show_grid() {
    const workspace::HeadChanges& changes = *shown_.changes;
    const auto measure = measure_index();
    std::vector<double> values;
    for (std::size_t row = 0; row < shown_.left->rows.size(); ++row)
        values.push_back(measure ? changes.change(row, *measure) : changes.score[row]);
    GridContent content;
    content.cells = signed_cells(std::move(values), measure.has_value());
    const workspace::Measure* about = measure ? workspace::find_measure(changes.measures[*measure]) : nullptr;
    content.of_layer = about && about->of_layer;
    const Study& study = *sides_.left.study;
    for (std::size_t site = 0; site < first_.size(); ++site) {
        const Site& place = study.sites()[site];
        content.rows.push_back({study.site_name(static_cast<std::int64_t>(site)), place.heads, group_of(place),
                                first_[site], place.has_matrix || place.has_implicit, done_[site]});
    }
    for (const auto* off : {&off_left_, &off_right_}) {
        for (const auto& head : *off) {
            content.off.resize(shown_.left->rows.size());
            if (const auto row = row_of(head.site, head.head)) content.off[*row] = true;
        }
    }
    std::vector<std::pair<double, QString>> ticks;
    const auto& scale = content.cells.scale;
    for (const double value : round_ticks(scale.scale, scale.minimum, scale.maximum, 5))
        ticks.emplace_back(fraction(scale, value), number_label(value));
    const QString unit = about && !about->unit.empty()
                             ? QStringLiteral(" (%1)").arg(
                                   QString::fromUtf8(about->unit.data(), static_cast<qsizetype>(about->unit.size())))
                             : QString();
    bar_->set_ticks(measure ? tr("Compared − baseline: %1%2").arg(measure_title(changes.measures[*measure]), unit)
                            : tr("All measures together, in standard deviations"),
                    scale.map, std::move(ticks));
    measures_->setToolTip(measures_->currentData(Qt::ToolTipRole).toString());
    grid_->set_content(std::move(content));
    grid_->set_selected(desk_->selection().site, desk_->selection().head);
    updating_ = true;
    model_->set_comparison(shown_, measure);
    fitted_->fit();
    select_row();
    updating_ = false;
    const auto heads = static_cast<int>(shown_.left->rows.size());
    list_title_->setText(model_->rowCount() == 0
                             ? tr("No head differs")
                             : tr("Heads that differ most · %1 of %2 differ").arg(model_->rowCount()).arg(heads));
    show_pointed(-1, -1);
}

void CompareHeads::select_row() {
    const auto row = row_of(desk_->selection().site, desk_->selection().head);
    const int at = row ? model_->row_of(*row) : -1;
    if (at < 0) return list_->clearSelection();
    if (list_->currentIndex().row() == at && list_->selectionModel()->isRowSelected(at)) return;
    list_->selectRow(at);
    list_->scrollTo(model_->index(at, 0));
}

QJsonObject CompareHeads::state() const {
    return {{"measure", measure()}};
}

void CompareHeads::restore(const QJsonObject& state) {
    const QJsonValue wanted = state[QLatin1String("measure")];
    if (!wanted.isString()) return;
    if (measures_->count() > 0)
        set_measure(wanted.toString());
    else
        wanted_measure_ = wanted.toString().isNull() ? QStringLiteral("") : wanted.toString();
}

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
// The widgets of a comparison's maps, their signals, and the state that a session keeps.
#include <QComboBox>
#include <QHBoxLayout>
#include <QJsonArray>
#include <QLabel>
#include <QVBoxLayout>
#include <algorithm>

#include "widgets/plots/chart/upright_scale.h"
#include "widgets/plots/map/map_plot.h"
#include "widgets/text/banner.h"
#include "widgets/text/line_label.h"
#include "widgets/views/compare/link_marks.h"
#include "widgets/views/compare/maps_page.h"

namespace headscope::widgets {
namespace {

constexpr int kTitleGap = 16;                    ///< pixels between the names of two maps
constexpr int kMapGap = 6, kTitleSpacing = 2;    ///< pixels between left and right map, of a title above its map
constexpr double kFlattest = 0.5, kHighest = 2;  ///< height by width of maps of two texts of other lengths
constexpr int kLeastMapSide = 60;                ///< pixels of a map's side
constexpr std::array kNames{"left_map", "right_map", "difference_map"};

}  // namespace

void CompareMaps::make_widgets() {
    const std::array titles{tr("Left"), tr("Right"), tr("Compared − baseline")};
    maps_ = new QWidget(this);
    auto* maps = new QHBoxLayout(maps_);
    maps->setContentsMargins(0, 0, 0, 0);
    maps->setSpacing(0);
    for (int i = left; i <= difference; ++i) {
        const auto which = static_cast<Which>(i);
        auto* plot = plots_[which] = new MapPlot(&desk_->tiles(), this);
        plot->setObjectName(QLatin1String(kNames[which]));
        plot->setAccessibleName(titles[which]);
        plot->setAccessibleDescription(tr("Queries downwards, keys to the right; all three maps move together."));
        plot->setMinimumSize(120, 120);
        plot->set_theme(theme_);
        marks_[which] = new LinkMarks(plot);
        auto* title = titles_[which] = new LineLabel(this);
        title->setObjectName(QLatin1String(kNames[which]) + QStringLiteral("_title"));
        title->setText(titles[which]);
        title->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
        title->setAlignment(Qt::AlignHCenter);
        auto* column = new QVBoxLayout;
        column->setSpacing(kTitleSpacing);
        column->addWidget(title);
        column->addWidget(plot, 1);
        column->addStretch();  // what squares leave over is below them
        maps->addLayout(column, 1);
        if (which == left) maps->addSpacing(kMapGap);
        if (which == left) continue;
        auto*& scale = which == right ? weights_ : signed_;
        scale = new UprightScale(this);
        auto* beside = new QVBoxLayout;  // as high as the map, not as its title too
        beside->addSpacing(title->sizeHint().height() + column->spacing());
        beside->addWidget(scale, 1);
        beside->addStretch();
        maps->addLayout(beside);
        connect(plot, &QCustomPlot::afterLayout, this, [this, which] {
            const QRect area = plots_[which]->area()->rect();
            const int top = plots_[which]->y() - (which == right ? weights_ : signed_)->y();
            (which == right ? weights_ : signed_)->set_span(top + area.top(), top + area.bottom());
        });
    }
    for (int i = left; i <= difference; ++i) {
        const auto which = static_cast<Which>(i);
        connect(plots_[which], &MapPlot::shown_changed, this, [this, which] { link_from(which); });
        connect(plots_[which], &MapPlot::pointed, this, [this, which](qint64 q, qint64 k) { point(which, q, k); });
        connect(plots_[which], &MapPlot::chosen, this, [this, which](qint64 q, qint64 k) { choose(which, q, k); });
    }
    values_ = make_choice("compare_values", tr("What is shown"), tr("Show weights, or scores before the normalizer"));
    values_->addItem(tr("Weights"), QStringLiteral("weights"));
    values_->addItem(tr("Scores"), QStringLiteral("logits"));
    connect(values_, &QComboBox::currentIndexChanged, this, [this] {
        look_.values = values_->currentIndex() == 1 ? MapLook::Values::logits : MapLook::Values::weights;
        if (shown_.sides.open(*desk_)) show_sides(CompareSides(shown_.sides));
        Q_EMIT state_changed();
    });
    scale_ = make_choice("compare_scale", tr("Color scale"),
                         tr("How values become colors. Automatic: weights by square root, of long texts logarithmic; "
                            "their difference by square root; scores linear"));
    scale_->addItem(tr("Automatic"), QStringLiteral("by_length"));
    scale_->addItem(tr("Linear"), QStringLiteral("linear"));
    scale_->addItem(tr("Logarithmic"), QStringLiteral("logarithmic"));
    scale_->addItem(tr("Square root"), QStringLiteral("square_root"));
    connect(scale_, &QComboBox::currentIndexChanged, this, [this] {
        look_.scale = static_cast<figures::CellScale>(scale_->currentIndex());  // in its order
        show_colours();
        Q_EMIT state_changed();
    });
    banner_ = new Banner(this);
    words_ = new QLabel(this);
    words_->setObjectName(QStringLiteral("compare_cell"));
    words_->setAccessibleName(tr("Pair of tokens"));
    words_->setTextFormat(Qt::PlainText);
    words_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    words_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    maps->addStretch();
    below_ = new QWidget(this);
    auto* below = new QHBoxLayout(below_);
    below->setContentsMargins(0, 0, 0, 0);
    below->addWidget(words_, 1);
    below->addWidget(values_);
    below->addWidget(scale_);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(4);
    column->addWidget(banner_);
    column->addWidget(maps_, 1);
    column->addWidget(below_);
    column->addStretch();
    connect(plots_[left], &QCustomPlot::afterLayout, this, &CompareMaps::make_square);
}

QComboBox* CompareMaps::make_choice(const char* name, const QString& title, const QString& tip) {
    auto* box = new QComboBox(this);
    box->setObjectName(QLatin1String(name));
    box->setAccessibleName(title);
    box->setToolTip(tip);
    return box;
}

void CompareMaps::show_titles() {
    if (!shown_.sides.left.study) return;
    // If room is short, leave out the analysis's name: the line above has it.
    const auto title = [this](Which which, const QString& text, const CompareSide& side) {
        titles_[which]->setToolTip(text);
        const int room = std::max(0, titles_[which]->width() - kTitleGap);
        const bool fits = fontMetrics().horizontalAdvance(text) <= room;
        titles_[which]->setText(fits ? text : QString(text).replace(QStringLiteral(": ") + side.label, QString()));
    };
    title(left, tr("Baseline: %1").arg(shown_.sides.left.name()), shown_.sides.left);
    title(right, tr("Compared: %1").arg(shown_.sides.right.name()), shown_.sides.right);
}

/// Maps are as high as wide, or as their text has queries by keys, and as large as the page lets all three be.
void CompareMaps::make_square() {
    const MapContent& content = plots_[left]->content();
    const double wanted =
        content.keys > 0 ? static_cast<double>(content.queries) / static_cast<double>(content.keys) : 1;
    const double ratio = std::clamp(wanted, kFlattest, kHighest);
    int across = 0, down = 0;  // around the maps
    for (const MapPlot* plot : plots_) {
        across += plot->width() - plot->area()->rect().width();
        down = std::max(down, plot->height() - plot->area()->rect().height());
    }
    const QMargins edges = layout()->contentsMargins();
    const int beside = weights_->sizeHint().width() + signed_->sizeHint().width() + kMapGap;
    const int around = (banner_->isHidden() ? 0 : banner_->height() + layout()->spacing()) + below_->height() +
                       layout()->spacing() + titles_[left]->height() + kTitleSpacing;
    const int width = (this->width() - edges.left() - edges.right() - beside - across) / 3;
    const int height = this->height() - edges.top() - edges.bottom() - around - down;
    const int side = std::max(kLeastMapSide, std::min(width, static_cast<int>(height / ratio)));
    const int high = static_cast<int>(side * ratio);
    for (MapPlot* plot : plots_) {
        const QSize room(side + plot->width() - plot->area()->rect().width(), high + down);
        if (plot->maximumSize() != room) plot->setMaximumSize(room);
    }
    for (UprightScale* scale : {weights_, signed_})
        if (scale->maximumHeight() != high + down) scale->setMaximumHeight(high + down);
    const int all = titles_[left]->height() + kTitleSpacing + high + down;
    if (maps_->maximumHeight() != all) maps_->setMaximumHeight(all);
}

void CompareMaps::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    QMetaObject::invokeMethod(this, &CompareMaps::show_titles, Qt::QueuedConnection);  // when they are laid out
    make_square();
}

QJsonObject CompareMaps::state() const {
    QJsonObject state{{"scale", scale_->currentData().toString()}, {"values", values_->currentData().toString()}};
    const MapContent& map = plots_[left]->content();
    const maps::Cells cells = wanted_cells_.value_or(plots_[left]->shown());
    if (wanted_cells_ || cells.queries() < map.queries || cells.keys() < map.keys)
        state[QLatin1String("cells")] =
            QJsonArray{static_cast<double>(cells.q_begin), static_cast<double>(cells.q_end),
                       static_cast<double>(cells.k_begin), static_cast<double>(cells.k_end)};
    return state;
}

void CompareMaps::restore(const QJsonObject& state) {
    const int index = scale_->findData(state[QLatin1String("scale")].toString());
    if (index >= 0) scale_->setCurrentIndex(index);
    const int values = values_->findData(state[QLatin1String("values")].toString());
    if (values >= 0) values_->setCurrentIndex(values);
    const QJsonArray array = state[QLatin1String("cells")].toArray();
    const auto number = [&array](int i) { return static_cast<std::int64_t>(array[i].toDouble(-1)); };
    const bool there = plots_[left]->content().queries > 0;
    wanted_cells_.reset();
    if (array.size() != 4) {
        if (there) plots_[left]->show_all();
        return;
    }
    const maps::Cells cells{number(0), number(1), number(2), number(3)};
    if (cells.q_begin < 0 || cells.k_begin < 0 || cells.queries() <= 0 || cells.keys() <= 0) return;
    if (!there)
        wanted_cells_ = cells;
    else if (cells.q_end <= plots_[left]->content().queries && cells.k_end <= plots_[left]->content().keys)
        plots_[left]->show_cells(cells);
}

}  // namespace headscope::widgets

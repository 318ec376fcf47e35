// SPDX-License-Identifier: GPL-3.0-or-later
// The map view's widgets, their signals, keys and menu.
#include <QClipboard>
#include <QContextMenuEvent>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QVBoxLayout>

#include "widgets/plots/chart/upright_scale.h"
#include "widgets/plots/map/map_plot.h"
#include "widgets/plots/map/map_profiles.h"
#include "widgets/plots/ticks.h"
#include "widgets/text/line_label.h"
#include "widgets/views/map/map.h"
#include "widgets/views/map/map_bar.h"

namespace headscope::widgets {
namespace {

constexpr int kRest = 400;  ///< ms after which what is shown counts as chosen

QLabel* make_line(QWidget* parent, const char* name, const QString& says) {
    auto* label = new LineLabel(parent);
    label->setObjectName(QLatin1String(name));
    label->setAccessibleName(says);
    label->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    return label;
}

QPushButton* make_button(QWidget* parent, const char* name, const QString& text, const QString& says) {
    auto* button = new QPushButton(text, parent);
    button->setObjectName(QLatin1String(name));
    button->setToolTip(says);
    return button;
}

}  // namespace

void MapView::make_widgets() {
    theme_ = desk().theme();
    bar_ = new MapBar(content());
    strip_ = new QFrame(content());
    strip_text_ = new QLabel(strip_);
    strip_text_->setObjectName(QStringLiteral("map_notice"));
    strip_text_->setWordWrap(true);
    strip_action_ = make_button(strip_, "map_run_again", tr("Run again with maps"),
                                tr("Runs the model on the same text once more and records its maps"));
    auto* strip = new QHBoxLayout(strip_);
    strip->setContentsMargins(8, 4, 8, 4);
    strip->addWidget(strip_text_, 1);
    strip->addWidget(strip_action_);
    strip_->setFrameShape(QFrame::StyledPanel);
    strip_->hide();

    plot_ = new MapPlot(&desk().tiles(), content());
    plot_->setObjectName(QStringLiteral("map_plot"));
    plot_->setAccessibleName(tr("Attention map"));
    plot_->setAccessibleDescription(tr("Queries downwards, keys to the right. Shift and arrows move, + and - zoom."));
    plot_->setMinimumSize(200, 160);
    plot_->set_theme(theme_);
    profiles_ = new MapProfiles(plot_);
    scale_ = new UprightScale(content());
    auto* middle = new QHBoxLayout;
    middle->setSpacing(0);
    middle->addWidget(plot_, 1);
    middle->addWidget(scale_);

    cell_text_ = make_line(content(), "map_cell", tr("Cell"));
    region_line_ = new QWidget(content());
    region_text_ = make_line(region_line_, "map_region_words", tr("Region"));
    auto* to_region = make_button(region_line_, "map_zoom_region", tr("Zoom to it"), tr("Shows the region alone"));
    auto* clear = make_button(region_line_, "map_clear_region", tr("Clear"), tr("Forgets the region (Esc)"));
    auto* region = new QHBoxLayout(region_line_);
    region->setContentsMargins(0, 0, 0, 0);
    region->addWidget(region_text_, 1);
    region->addWidget(to_region);
    region->addWidget(clear);
    region_line_->hide();
    connect(to_region, &QPushButton::clicked, this, &MapView::zoom_to_region);
    connect(clear, &QPushButton::clicked, this, &MapView::clear_region);
    auto* words = new QVBoxLayout;
    words->setContentsMargins(8, 4, 8, 4);
    words->addWidget(cell_text_);
    words->addWidget(region_line_);

    auto* column = new QVBoxLayout(content());
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(bar_);
    column->addWidget(strip_);
    column->addLayout(middle, 1);
    column->addLayout(words);
    bar_->set_look(look_);
    bar_->set_profiles(show_profiles_);
}

void MapView::connect_widgets() {
    connect(strip_action_, &QPushButton::clicked, this, [this] {
        RunRequest wish;
        wish.study = selection().study;
        wish.maps = true;
        wish.norms = figures::of_norms(look_.values);
        Q_EMIT desk().run_wanted(wish);
    });
    connect(bar_, &MapBar::look_chosen, this, &MapView::set_look);
    connect(bar_, &MapBar::jump_wanted, this, &MapView::jump);
    connect(bar_, &MapBar::region_mode_chosen, plot_, &MapPlot::set_region_mode);
    connect(bar_, &MapBar::profiles_chosen, this, &MapView::set_profiles);
    connect(bar_, &MapBar::zoom_wanted, plot_, &MapPlot::zoom);
    connect(bar_, &MapBar::all_wanted, plot_, &MapPlot::show_all);
    connect(plot_, &MapPlot::pointed, this, [this](qint64 query, qint64 key) {
        pointed_.reset();
        if (query >= 0) pointed_.emplace(query, key);
        probe();
    });
    connect(plot_, &MapPlot::chosen, this, [this](qint64 query, qint64 key) {
        query_ = query;  // it is in sight
        key_ = key;
        select_units(query, key);
    });
    connect(plot_, &MapPlot::region_chosen, this, &MapView::take_region);
    connect(plot_, &QCustomPlot::afterLayout, this, [this] {
        const QRect area = plot_->area()->rect();
        scale_->set_span(area.top(), area.bottom());
    });
    rest_.setSingleShot(true);
    rest_.setInterval(kRest);
    connect(plot_, &MapPlot::shown_changed, &rest_, qOverload<>(&QTimer::start));
    connect(&rest_, &QTimer::timeout, this, &MapView::state_changed);
    connect(&probe_, &MapProbe::read, this, &MapView::show_words);
    connect(&probe_, &MapProbe::measured, this, &MapView::show_region_words);
    connect(&probe_, &MapProbe::failed, &desk(), &Desk::failed);
    connect(&probe_, &MapProbe::written, this, [this](const QString& text) {
        QGuiApplication::clipboard()->setText(text);
        Q_EMIT desk().told(tr("Copied %1 pairs").arg(text.count(QLatin1Char('\n')) - 1));
    });
}

void MapView::zoom_to_region() {
    if (!plot_->region()) return;
    plot_->show_cells(*plot_->region());
    clear_region();
}

void MapView::copy_value() {
    const MapReading& reading = probe_.reading();
    if (nothing_named() || !reading.target.query || !reading.target.key) return;
    const float value = shown_.look.logits() ? reading.pair.logit : reading.pair.weight;
    QGuiApplication::clipboard()->setText(QString::number(static_cast<double>(value), 'g', 9));
    Q_EMIT desk().told(tr("Copied the value"));
}

void MapView::copy_shown() {
    if (!shown_.map || !study()) return;
    const maps::Cells cells = plot_->region().value_or(plot_->shown());
    if (cells.queries() * cells.keys() > MapProbe::kMostCells) {
        Q_EMIT desk().told(tr("%1 × %2 pairs are too many to copy: zoom in, or choose a region, to %3 pairs at most")
                               .arg(cells.queries())
                               .arg(cells.keys())
                               .arg(MapProbe::kMostCells));
        return;
    }
    probe_.write_table(shown_.map, cells, shown_tokens(true), shown_tokens(false));
}

void MapView::keyPressEvent(QKeyEvent* event) {
    const auto held = event->modifiers() & ~Qt::KeypadModifier;
    const auto pan = [&](double across, double down) { plot_->pan(across * kPanStep, down * kPanStep); };
    if (held == Qt::ShiftModifier) {
        switch (event->key()) {
            case Qt::Key_Left:
                return pan(-1, 0);
            case Qt::Key_Right:
                return pan(1, 0);
            case Qt::Key_Up:
                return pan(0, -1);
            case Qt::Key_Down:
                return pan(0, 1);
            default:
                break;
        }
    }
    const bool control = held == Qt::ControlModifier;
    if (control || held == (Qt::ControlModifier | Qt::ShiftModifier)) {
        const auto go = [&](int queries, int keys) {
            control ? step_pair(queries, keys) : stretch_region(queries, keys);
        };
        switch (event->key()) {
            case Qt::Key_Left:
                return go(0, -1);
            case Qt::Key_Right:
                return go(0, 1);
            case Qt::Key_Up:
                return go(-1, 0);
            case Qt::Key_Down:
                return go(1, 0);
            default:
                break;
        }
    }
    if (held == Qt::NoModifier || held == Qt::ShiftModifier) {
        switch (event->key()) {
            case Qt::Key_Plus:
            case Qt::Key_Equal:
                return plot_->zoom(kZoomStep);
            case Qt::Key_Minus:
            case Qt::Key_Underscore:
                return plot_->zoom(1 / kZoomStep);
            case Qt::Key_0:
                return plot_->show_all();
            case Qt::Key_Escape:
                if (plot_->region()) return clear_region();
                if (plot_->region_mode()) {
                    plot_->set_region_mode(false);
                    return bar_->set_region_mode(false);
                }
                break;
            default:
                break;
        }
    }
    View::keyPressEvent(event);
}

void MapView::contextMenuEvent(QContextMenuEvent* event) {
    if (shown_.study == 0 || !plot_->isVisible()) return View::contextMenuEvent(event);
    auto* menu = new QMenu(this);
    menu->setObjectName(QStringLiteral("map_menu"));
    menu->setAttribute(Qt::WA_DeleteOnClose);
    QAction* value = menu->addAction(tr("Copy value"), this, &MapView::copy_value);
    QAction* table = menu->addAction(plot_->region() ? tr("Copy region as CSV") : tr("Copy what is shown as CSV"), this,
                                     &MapView::copy_shown);
    menu->addSeparator();
    QAction* region = menu->addAction(tr("Zoom to region"), this, &MapView::zoom_to_region);
    QAction* clear = menu->addAction(tr("Clear region"), this, &MapView::clear_region);
    menu->addAction(tr("Zoom to all"), plot_, &MapPlot::show_all);
    value->setEnabled(shown_.map && !nothing_named() && probe_.reading().target.query && probe_.reading().target.key);
    table->setEnabled(shown_.map != nullptr);
    region->setEnabled(plot_->region().has_value());
    clear->setEnabled(plot_->region().has_value());
    add_figure_actions(menu);
    menu->popup(event->globalPos());
}

}  // namespace headscope::widgets

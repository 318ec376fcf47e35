// SPDX-License-Identifier: GPL-3.0-or-later
// The widgets of a comparison's maps and what they tell it.
#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>

#include "widgets/compare/link_marks.h"
#include "widgets/compare/maps_page.h"
#include "widgets/map_plot.h"
#include "widgets/text/banner.h"
#include "widgets/upright_scale.h"

namespace headscope::widgets {
namespace {

constexpr std::array kNames{"left_map", "right_map", "difference_map"};

}  // namespace

void CompareMaps::make_widgets() {
    const std::array titles{tr("Left"), tr("Right"), tr("Right minus left")};
    auto* maps = new QHBoxLayout;
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
        auto* title = titles_[which] = new QLabel(titles[which], this);
        title->setObjectName(QLatin1String(kNames[which]) + QStringLiteral("_title"));
        title->setTextFormat(Qt::PlainText);
        title->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
        title->setAlignment(Qt::AlignHCenter);
        auto* column = new QVBoxLayout;
        column->setSpacing(2);
        column->addWidget(title);
        column->addWidget(plot, 1);
        maps->addLayout(column, 1);
        if (which == left) continue;
        auto*& scale = which == right ? weights_ : signed_;
        scale = new UprightScale(this);
        auto* beside = new QVBoxLayout;  // as high as the map, not as its title too
        beside->addSpacing(title->sizeHint().height() + column->spacing());
        beside->addWidget(scale, 1);
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
    scale_ = new QComboBox(this);
    scale_->setObjectName(QStringLiteral("compare_scale"));
    scale_->setAccessibleName(tr("Colour scale"));
    scale_->setToolTip(
        tr("How values become colours. Automatic: weights by square root, of long texts logarithmic; the difference "
           "by square root"));
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
    auto* below = new QHBoxLayout;
    below->addWidget(words_, 1);
    below->addWidget(scale_);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(4);
    column->addWidget(banner_);
    column->addLayout(maps, 1);
    column->addLayout(below);
}

void CompareMaps::show_titles() {
    const auto title = [this](Which which, const QString& text) {
        titles_[which]->setToolTip(text);
        titles_[which]->setText(fontMetrics().elidedText(text, Qt::ElideMiddle, titles_[which]->width()));
    };
    if (!shown_.sides.left.study) return;
    title(left, tr("Left: %1").arg(shown_.sides.left.name()));
    title(right, tr("Right: %1").arg(shown_.sides.right.name()));
}

void CompareMaps::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    QMetaObject::invokeMethod(this, &CompareMaps::show_titles, Qt::QueuedConnection);  // when they are laid out
}

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/map/map_bar.h"

#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QToolButton>

#include "widgets/plain_controls.h"
#include "widgets/plots/map/map_plot.h"
#include "widgets/text/flow_layout.h"
#include "widgets/text/line_label.h"

namespace headscope::widgets {
namespace {

using figures::CellScale;

QComboBox* make_list(QWidget* parent, const char* name, const QString& tip, const QStringList& items) {
    auto* combo = make_combo(parent, name, tip);
    combo->addItems(items);
    combo->setMinimumContentsLength(4);
    return combo;
}

}  // namespace

MapBar::MapBar(QWidget* parent) : QWidget(parent), title_(new LineLabel(this)) {
    values_ = make_list(this, "map_values", tr("Show weights, scores before the normalizer, norms, or rollout"),
                        {tr("Weights"), tr("Scores"), tr("Norms"), tr("Layer's norms"), tr("Rollout")});
    // In the order of MapValues.
    values_->setItemData(2, tr("Norm of this head's contribution: weight times value times output projection"),
                         Qt::ToolTipRole);
    values_->setItemData(3, tr("Norm of the contribution of all heads of the layer together"), Qt::ToolTipRole);
    values_->setItemData(4, tr("Weights and residual, multiplied through the layers up to this one"), Qt::ToolTipRole);
    // In the order of CellScale.
    scale_ = make_list(this, "map_scale", tr("How values become colors"),
                       {tr("Automatic"), tr("Linear"), tr("Logarithmic"), tr("Square root"), tr("Rank in row")});
    scale_->setItemData(0, tr("Weights: square root for short texts, logarithmic for long ones; scores: linear"),
                        Qt::ToolTipRole);
    scale_->setItemData(4, tr("Each weight's rank among those of its query, from 0 to 1"), Qt::ToolTipRole);
    pooling_ =
        make_list(this, "map_pooling", tr("Value of a pixel that covers several pairs"), {tr("Maximum"), tr("Mean")});
    units_ = make_list(this, "map_units", tr("Show the tokenizer's pieces, or words (rows averaged, columns summed)"),
                       {tr("Pieces"), tr("Words")});
    axis_ = make_list(this, "map_jump_axis", tr("What to jump to"), {tr("Query"), tr("Key")});
    jump_ = new QLineEdit(this);
    jump_->setObjectName(QStringLiteral("map_jump"));
    jump_->setAccessibleName(tr("Jump to token"));
    jump_->setPlaceholderText(tr("Position or text"));
    jump_->setToolTip(
        tr("Jump to a token: its position, or text that it holds; Enter again for the next one. "
           "A number in quotes is text."));
    jump_->setClearButtonEnabled(true);
    jump_->setMinimumWidth(50);
    jump_->setMaximumWidth(170);
    QFont bold = title_->font();
    bold.setBold(true);
    title_->setFont(bold);
    title_->setObjectName(QStringLiteral("map_title"));

    auto* line = new FlowLayout(this, 4);
    line->setContentsMargins(6, 4, 6, 4);
    line->addWidget(title_);
    line->addWidget(values_);
    line->addWidget(scale_);
    line->addWidget(pooling_);
    line->addWidget(units_);
    line->addWidget(axis_);
    line->addWidget(jump_);
    region_ = add_button(line, "map_region", QStringLiteral("⬚"),
                         tr("Choose a region by dragging (always with Shift), or by Ctrl+Shift+arrows; Esc clears it"));
    region_->setCheckable(true);
    profiles_ = add_button(line, "map_profiles", QStringLiteral("∿"),
                           tr("Row above and column beside the map, of the cell under the pointer or the chosen one"));
    profiles_->setCheckable(true);
    auto* out = add_button(line, "map_zoom_out", QStringLiteral("−"), tr("Zoom out (-)"));
    auto* in = add_button(line, "map_zoom_in", QStringLiteral("+"), tr("Zoom in (+)"));
    auto* all = add_button(line, "map_all", tr("All"), tr("Show the whole map (0, or a double click)"));

    for (QComboBox* combo : {values_, scale_, pooling_, units_})
        connect(combo, &QComboBox::activated, this, &MapBar::tell_look);
    connect(jump_, &QLineEdit::returnPressed, this,
            [this] { Q_EMIT jump_wanted(jump_->text(), axis_->currentIndex() == 0); });
    connect(region_, &QToolButton::toggled, this, &MapBar::region_mode_chosen);
    connect(profiles_, &QToolButton::toggled, this, &MapBar::profiles_chosen);
    connect(in, &QToolButton::clicked, this, [this] { Q_EMIT zoom_wanted(kZoomStep); });
    connect(out, &QToolButton::clicked, this, [this] { Q_EMIT zoom_wanted(1 / kZoomStep); });
    connect(all, &QToolButton::clicked, this, &MapBar::all_wanted);
}

QToolButton* MapBar::add_button(QLayout* line, const char* name, const QString& text, const QString& says) {
    auto* button = new QToolButton(this);
    button->setObjectName(QLatin1String(name));
    button->setText(text);
    button->setAccessibleName(says);
    button->setToolTip(says);
    button->setAutoRaise(true);
    button->setFocusPolicy(Qt::TabFocus);
    button->setMinimumSize(26, 26);
    line->addWidget(button);
    return button;
}

void MapBar::set_look(const MapLook& look) {
    look_ = look;
    values_->setCurrentIndex(look.words ? 0 : static_cast<int>(look.values));
    values_->setEnabled(maps_ && !look.words);  // words have weights alone
    scale_->setCurrentIndex(static_cast<int>(look.scale));
    pooling_->setCurrentIndex(look.pooling == figures::Pooling::mean ? 1 : 0);
    units_->setCurrentIndex(look.words ? 1 : 0);
}

void MapBar::tell_look() {
    look_.values = static_cast<MapLook::Values>(values_->currentIndex());
    look_.scale = static_cast<CellScale>(scale_->currentIndex());
    look_.words = units_->currentIndex() == 1;
    look_.pooling = pooling_->currentIndex() == 1 ? figures::Pooling::mean : figures::Pooling::maximum;
    Q_EMIT look_chosen(look_);
}

void MapBar::set_profiles(bool shown) {
    const QSignalBlocker quiet(profiles_);
    profiles_->setChecked(shown);
}

void MapBar::set_region_mode(bool on) {
    const QSignalBlocker quiet(region_);
    region_->setChecked(on);
}

void MapBar::set_title(const QString& title) {
    title_->setText(title);
}

void MapBar::set_maps(bool there) {
    maps_ = there;
    for (QWidget* widget : std::initializer_list<QWidget*>{units_, region_, profiles_}) widget->setEnabled(there);
    values_->setEnabled(there && !look_.words);
}

}  // namespace headscope::widgets

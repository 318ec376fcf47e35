// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/training/layer_column.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <QStyledItemDelegate>
#include <algorithm>

#include "widgets/training/mixer_style.h"

namespace headscope::widgets {
namespace {

constexpr int kLeastRow = 20, kMostRow = 34;  ///< height of a row

}  // namespace

class LayerColumn::Painter final : public QStyledItemDelegate {
public:
    explicit Painter(LayerColumn* column) : QStyledItemDelegate(column), column_(column) {}

    QSize sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const override { return {120, height}; }

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        const auto row = static_cast<std::size_t>(index.row());
        if (row >= column_->layers_.size()) return;
        const Theme& theme = column_->theme_;
        const std::string& mixer = column_->layers_[row];
        const QColor colour = mixer_color(theme, mixer);
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        const int number_width = option.fontMetrics.horizontalAdvance(QStringLiteral("000")) + 8;
        const QRectF bar = QRectF(option.rect).adjusted(number_width, 1.5, -4, -1.5);
        const bool chosen = option.state & QStyle::State_Selected, current = option.state & QStyle::State_HasFocus;
        painter->setPen(chosen ? theme.text : theme.muted);
        QFont font = option.font;
        font.setBold(chosen);
        painter->setFont(font);
        painter->drawText(QRectF(option.rect.left(), option.rect.top(), number_width - 8, option.rect.height()),
                          Qt::AlignRight | Qt::AlignVCenter, QString::number(index.row()));
        const bool hovered = option.state & QStyle::State_MouseOver;
        painter->setPen(chosen || current ? QPen(theme.text, current ? 2 : 1.4) : QPen(Qt::NoPen));
        painter->setBrush(hovered && !chosen ? colour.lighter(108) : colour);
        painter->drawRoundedRect(bar, 5, 5);
        painter->setPen(readable_on(colour));
        font.setBold(false);
        painter->setFont(font);
        const QRectF words = bar.adjusted(10, 0, -8, 0);
        painter->drawText(
            words, Qt::AlignLeft | Qt::AlignVCenter,
            QFontMetrics(font).elidedText(mixer_title(mixer), Qt::ElideRight, static_cast<int>(words.width())));
        painter->restore();
    }

    int height = kMostRow;

private:
    LayerColumn* column_;
};

LayerColumn::LayerColumn(QWidget* parent) : QListWidget(parent), theme_(make_theme(false)) {
    setObjectName(QStringLiteral("layers"));
    setAccessibleName(tr("Layers and their mixers"));
    setToolTip(tr("Click sets the next mixer · Drag fills · Shift or Ctrl choose several · 1 to 7 set a mixer"));
    setItemDelegate(new Painter(this));
    setSelectionMode(ExtendedSelection);
    setFrameShape(NoFrame);
    setMouseTracking(true);
    setUniformItemSizes(true);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setVerticalScrollMode(ScrollPerPixel);
    viewport()->setAttribute(Qt::WA_Hover);
}

void LayerColumn::set_mixers(std::vector<std::string> mixers) {
    mixers_ = std::move(mixers);
}

void LayerColumn::set_theme(const Theme& theme) {
    theme_ = theme;
    viewport()->update();
}

void LayerColumn::set_layers(const std::vector<std::string>& layers) {
    const bool count = layers.size() != layers_.size();
    layers_ = layers;
    if (count) {
        clear();
        for (std::size_t i = 0; i < layers_.size(); ++i) addItem(QString());
        fit_rows();
        if (!layers_.empty()) setCurrentRow(0);
    }
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        QListWidgetItem* one = item(static_cast<int>(i));
        const QString words = tr("Layer %1: %2").arg(i).arg(mixer_title(layers_[i]));
        one->setText(words);  // for screen readers and the search by letters; the delegate draws
        one->setToolTip(words);
    }
    viewport()->update();
}

void LayerColumn::fit_rows() {
    auto* painter = static_cast<Painter*>(itemDelegate());
    const int count = std::max<int>(1, static_cast<int>(layers_.size()));
    const int height = std::clamp(viewport()->height() / count, kLeastRow, kMostRow);
    if (height == painter->height) return;
    painter->height = height;
    scheduleDelayedItemsLayout();
}

void LayerColumn::resizeEvent(QResizeEvent* event) {
    QListWidget::resizeEvent(event);
    fit_rows();
}

std::string LayerColumn::next(const std::string& mixer) const {
    if (mixers_.empty()) return mixer;
    const auto place = std::find(mixers_.begin(), mixers_.end(), mixer);
    return place == mixers_.end() || place + 1 == mixers_.end() ? mixers_.front() : *(place + 1);
}

void LayerColumn::set(int row, const std::string& mixer) {
    if (row < 0 || row >= static_cast<int>(layers_.size())) return;
    auto layers = layers_;
    layers[static_cast<std::size_t>(row)] = mixer;
    set_layers(layers);
}

void LayerColumn::give(const std::string& mixer) {
    bool other = false;
    auto layers = layers_;
    for (const QModelIndex& index : selectedIndexes()) {
        auto& layer = layers[static_cast<std::size_t>(index.row())];
        other |= layer != mixer;
        layer = mixer;
    }
    if (!other) return;
    set_layers(layers);
    Q_EMIT edited();
}

QItemSelectionModel::SelectionFlags LayerColumn::selectionCommand(const QModelIndex& index, const QEvent* event) const {
    // While a drag fills, it does not choose.
    if (event && event->type() == QEvent::MouseMove && pressed_ >= 0) return QItemSelectionModel::NoUpdate;
    return QListWidget::selectionCommand(index, event);
}

void LayerColumn::mousePressEvent(QMouseEvent* event) {
    const bool plain =
        event->button() == Qt::LeftButton && !(event->modifiers() & (Qt::ShiftModifier | Qt::ControlModifier));
    pressed_ = plain ? row(itemAt(event->position().toPoint())) : -1;
    pressed_layers_ = layers_;
    filled_ = false;
    QListWidget::mousePressEvent(event);
}

void LayerColumn::mouseMoveEvent(QMouseEvent* event) {
    // The job may have got another stack meanwhile.
    if (layers_.size() != pressed_layers_.size()) pressed_ = -1;
    if (pressed_ < 0 || !(event->buttons() & Qt::LeftButton)) {
        QListWidget::mouseMoveEvent(event);
        return;
    }
    const QPoint place(viewport()->width() / 2,
                       std::clamp(static_cast<int>(event->position().y()), 0, std::max(0, viewport()->height() - 1)));
    int at = row(itemAt(place));
    if (at < 0) at = event->position().y() > 0 ? count() - 1 : 0;
    if (at == pressed_ && !filled_) return;
    filled_ = true;
    auto layers = pressed_layers_;
    const std::string mixer = layers[static_cast<std::size_t>(pressed_)];
    for (int i = std::min(at, pressed_); i <= std::max(at, pressed_); ++i) layers[static_cast<std::size_t>(i)] = mixer;
    if (layers != layers_) set_layers(layers);
    scrollToItem(item(at));
}

void LayerColumn::mouseReleaseEvent(QMouseEvent* event) {
    const int began = std::exchange(pressed_, -1);
    QListWidget::mouseReleaseEvent(event);
    if (began < 0 || layers_.size() != pressed_layers_.size()) return;
    if (!filled_ && row(itemAt(event->position().toPoint())) == began)
        set(began, next(layers_[static_cast<std::size_t>(began)]));
    if (layers_ != pressed_layers_) Q_EMIT edited();
}

void LayerColumn::keyPressEvent(QKeyEvent* event) {
    const int number = event->key() - Qt::Key_1;
    const bool plain = !(event->modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::MetaModifier));
    if (plain && number >= 0 && number < static_cast<int>(mixers_.size())) {
        give(mixers_[static_cast<std::size_t>(number)]);
        return;
    }
    if (plain && (event->key() == Qt::Key_Space || event->key() == Qt::Key_Return) && currentRow() >= 0) {
        give(next(layers_[static_cast<std::size_t>(currentRow())]));
        return;
    }
    QListWidget::keyPressEvent(event);
}

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/frame/figure_handle.h"

#include <QActionGroup>
#include <QApplication>
#include <QContextMenuEvent>
#include <QDrag>
#include <QFile>
#include <QIcon>
#include <QImage>
#include <QMenu>
#include <QMimeData>
#include <QMouseEvent>
#include <QPainter>
#include <QUrl>

namespace headscope::widgets {
namespace {

constexpr int kDragPicture = 160;            ///< pixels, under the pointer
constexpr qint64 kMostCarried = 32'000'000;  ///< bytes that a drag carries beside the file's address

const char* mime_type_of(const QString& path) {
    if (path.endsWith(QLatin1String(".svg"))) return "image/svg+xml";
    if (path.endsWith(QLatin1String(".pdf"))) return "application/pdf";
    return "image/png";
}

}  // namespace

FigureHandle::FigureHandle(QWidget* parent) : QToolButton(parent) {
    setObjectName(QStringLiteral("figure_handle"));
    setAccessibleName(tr("Drag the figure"));
    setAutoRaise(true);
    setFocusPolicy(Qt::NoFocus);
    setCursor(Qt::OpenHandCursor);
    set_format(format_);
    draw_icon();
}

void FigureHandle::set_format(const QString& format) {
    format_ = format;
    setToolTip(tr("Drag this out of the window: the figure in front as a %1 file. Right click: another format")
                   .arg(format.toUpper()));
}

void FigureHandle::changeEvent(QEvent* event) {
    QToolButton::changeEvent(event);
    if (event->type() == QEvent::PaletteChange) draw_icon();
}

void FigureHandle::draw_icon() {
    QPixmap picture(32, 32);
    picture.fill(Qt::transparent);
    QPainter painter(&picture);
    painter.setRenderHint(QPainter::Antialiasing);
    const QColor ink = palette().color(QPalette::WindowText);
    painter.setPen(QPen(ink, 2));
    painter.drawRect(3, 3, 18, 18);
    painter.drawLine(7, 17, 12, 11);
    painter.drawLine(12, 11, 17, 14);
    painter.drawLine(17, 21, 28, 28);
    painter.drawLine(28, 20, 28, 28);
    painter.drawLine(20, 28, 28, 28);
    setIcon(picture);
}

void FigureHandle::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return QToolButton::mousePressEvent(event);
    pressed_ = event->position().toPoint();
    held_ = true;
    moved_ = false;
    path_.clear();
    setCursor(Qt::ClosedHandCursor);
    Q_EMIT file_wanted(format_);
}

void FigureHandle::mouseMoveEvent(QMouseEvent* event) {
    if (!held_) return QToolButton::mouseMoveEvent(event);
    const bool far = (event->position().toPoint() - pressed_).manhattanLength() >= QApplication::startDragDistance();
    if (!far || moved_) return;
    moved_ = true;
    if (path_.isEmpty())
        setCursor(Qt::BusyCursor);  // the figure is being made
    else
        start();
}

void FigureHandle::mouseReleaseEvent(QMouseEvent* event) {
    held_ = false;
    setCursor(Qt::OpenHandCursor);
    if (event->button() != Qt::LeftButton) QToolButton::mouseReleaseEvent(event);
}

void FigureHandle::begin(const QString& path) {
    if (!held_) return;
    path_ = path;
    if (moved_) start();
}

QMimeData* FigureHandle::carried(const QString& path) {
    auto* data = new QMimeData;
    data->setUrls({QUrl::fromLocalFile(path)});
    QFile file(path);
    if (file.size() > kMostCarried || !file.open(QIODevice::ReadOnly)) return data;
    const QByteArray bytes = file.readAll();
    data->setData(QLatin1String(mime_type_of(path)), bytes);
    if (path.endsWith(QLatin1String(".png"))) data->setImageData(QImage::fromData(bytes, "PNG"));
    return data;
}

void FigureHandle::start() {
    held_ = false;
    auto* drag = new QDrag(this);
    drag->setMimeData(carried(path_));
    const QImage picture = qvariant_cast<QImage>(drag->mimeData()->imageData());
    if (!picture.isNull())
        drag->setPixmap(QPixmap::fromImage(
            picture.scaled(kDragPicture, kDragPicture, Qt::KeepAspectRatio, Qt::SmoothTransformation)));
    drag->exec(Qt::CopyAction);
    setCursor(Qt::OpenHandCursor);
}

void FigureHandle::contextMenuEvent(QContextMenuEvent* event) {
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    auto* formats = new QActionGroup(menu);
    for (const char* format : {"png", "svg", "pdf"}) {
        const QString name = QLatin1String(format);
        QAction* entry =
            menu->addAction(tr("Drag as %1").arg(name.toUpper()), this, [this, name] { set_format(name); });
        entry->setCheckable(true);
        entry->setChecked(name == format_);
        formats->addAction(entry);
    }
    menu->popup(event->globalPos());
}

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPoint>
#include <QToolButton>

namespace headscope::widgets {

/// A handle by which the figure in front is dragged out of the window, as a file: into a folder, a mail, a document.
/// The file is made when the handle is pressed, and the drag begins once it is there. Its menu chooses the format.
class FigureHandle : public QToolButton {
    Q_OBJECT
public:
    explicit FigureHandle(QWidget* parent = nullptr);

    QString format() const { return format_; }  ///< png, svg, pdf
    void set_format(const QString& format);
    /// The file that was asked for. Begins the drag, if the button is still held.
    void begin(const QString& path);
    /// Without a drag loop, for tests: what a drag of the file carries.
    static QMimeData* carried(const QString& path);

Q_SIGNALS:
    void file_wanted(const QString& format);

protected:
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    void draw_icon();
    void start();

    QString format_ = QStringLiteral("png");
    QString path_;
    QPoint pressed_;
    bool held_ = false, moved_ = false;
};

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QScrollArea>

namespace headscope::widgets {

/// Holds a panel as large as there is room for, and scrolls it only where it would not fit even at its smallest:
/// controls are then whole, not squeezed. (QScrollArea's own resizable mode scrolls as soon as a panel whose labels
/// wrap has less than it would like.)
class SnugScroll : public QScrollArea {
    Q_OBJECT
public:
    explicit SnugScroll(QWidget* parent = nullptr);
    /// The panel has a layout; it belongs to the scroll area then.
    void hold(QWidget* panel);

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

protected:
    void resizeEvent(QResizeEvent* event) override;
    bool eventFilter(QObject* object, QEvent* event) override;

private:
    void fit();
};

}  // namespace headscope::widgets

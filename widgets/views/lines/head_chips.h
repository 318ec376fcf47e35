// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractButton>
#include <QWidget>
#include <map>
#include <vector>

#include "widgets/theme.h"

namespace headscope::widgets {

/// One head of a HeadChips: filled with its colour while it is shown.
class HeadChip : public QAbstractButton {
    Q_OBJECT
public:
    HeadChip(int head, QWidget* parent);
    void set_look(const QColor& colour, bool selected, const Theme& theme);
    QSize sizeHint() const override;

Q_SIGNALS:
    void pressed_alone();  ///< with Alt, or by Shift and Space

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    QColor colour_;
    bool selected_ = false;
    Theme theme_;
};

/// All heads of a layer as chips: a click shows or hides one, Alt+click shows it alone; keys as well.
class HeadChips : public QWidget {
    Q_OBJECT
public:
    explicit HeadChips(QWidget* parent = nullptr);
    /// `colours`: of each head that is shown.
    void set_heads(int count, const std::map<int, QColor>& colours, int selected, const Theme& theme);
    HeadChip* chip(int head) const { return chips_.at(static_cast<std::size_t>(head)); }
    int count() const { return static_cast<int>(chips_.size()); }

Q_SIGNALS:
    void toggled(int head, bool shown);
    void only(int head);

private:
    std::vector<HeadChip*> chips_;
};

}  // namespace headscope::widgets

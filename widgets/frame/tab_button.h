// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QToolButton>

namespace headscope::widgets {

/// A tab as a button with a name of its own: as wide as its text, which is never cut. A group stands on the first row,
/// underlined while it is shown; a view on the second one, in a frame.
class TabButton : public QToolButton {
    Q_OBJECT
public:
    enum class Row { groups, views };
    TabButton(const QString& text, Row row, QWidget* parent = nullptr);

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }
    /// False: another part of the window has the keys.
    void set_in_front(bool in_front);

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QFont bold_font() const;
    const Row row_;
    bool in_front_ = true;
};

}  // namespace headscope::widgets

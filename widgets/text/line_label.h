// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>

namespace headscope::widgets {

/// One line of plain text that may be narrower than its words: they then end in dots, and the tool tip has all of them.
/// Needs no width of its own, so that changing words never resize what is around it.
class LineLabel : public QLabel {
    Q_OBJECT

public:
    explicit LineLabel(QWidget* parent = nullptr);

    QSize minimumSizeHint() const override;
    /// The words do not fit.
    bool elided() const;

protected:
    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
};

}  // namespace headscope::widgets

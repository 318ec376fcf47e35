// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "core/figures/figure_data.h"
#include "widgets/theme.h"

namespace headscope::widgets {

/// An upright colour scale with ticks and a turned label, beside a plot of the window.
class UprightScale : public QWidget {
    Q_OBJECT
public:
    explicit UprightScale(QWidget* parent = nullptr);

    void set_look(const figures::ColourScale& scale, const Theme& theme);
    /// The bar ends at these heights of the widget: those of the plot beside it.
    void set_span(int top, int bottom);
    QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    figures::ColourScale scale_;
    Theme theme_;
    int top_ = 8, bottom_ = 0;
};

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "core/figures/figure_data.h"
#include "widgets/theme.h"

namespace headscope::widgets {

/// A lying colour bar with round values under it and, before it, what the colours mean.
class ColourKey : public QWidget {
    Q_OBJECT
public:
    explicit ColourKey(QWidget* parent = nullptr);
    void set_scale(const figures::ColourScale& scale, const Theme& theme);
    const figures::ColourScale& scale() const { return scale_; }
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    int label_width() const;
    int zero_width() const;
    figures::ColourScale scale_;
    Theme theme_;
};

/// "linear", "square root", "logarithmic".
QString scale_name(figures::ScaleKind kind);

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "widgets/plots/qcp.h"
#include "widgets/theme.h"

namespace headscope::widgets {

/// Loss by position with its running mean. Drag pans and the wheel zooms along the text, a double click shows all, a
/// click chooses the token there.
class LossCurve : public QCustomPlot {
    Q_OBJECT
public:
    explicit LossCurve(QWidget* parent = nullptr);
    /// One value a token in nats; NaN: none.
    void set_values(const std::vector<float>& values);
    void set_chosen(std::optional<std::int64_t> token);
    void set_theme(const Theme& theme);
    QSize sizeHint() const override { return {400, 170}; }
    QSize minimumSizeHint() const override { return {160, 120}; }

Q_SIGNALS:
    void chosen(qint64 token);

protected:
    void mousePressEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;

private:
    void show_all();
    void keep_inside(const QCPRange& range);

    Theme theme_;
    std::vector<float> values_;
    QCPItemStraightLine* mark_;
    int mean_width_ = 1;
    QPoint pressed_;
};

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "widgets/plots/qcp.h"

namespace headscope::widgets {

/// Ticks at the middle of cells: each cell's token where there is room for all of them, else round positions.
/// `pixels_per_cell` follows the axis; set it before the axis is laid out.
class TokenTicker final : public QCPAxisTicker {
public:
    void set_labels(std::vector<QString> labels) { labels_ = std::move(labels); }
    /// Room along the axis that a label needs, in pixels.
    void set_label_room(double pixels) { label_room_ = pixels; }
    void set_length(double pixels) { length_ = pixels; }

    /// True if tokens are shown for this range of cells.
    bool shows_tokens(const QCPRange& range) const;
    /// Cells from one tick to the next.
    std::int64_t step(const QCPRange& range) const;
    void generate(const QCPRange& range, const QLocale& locale, QChar format, int precision, QVector<double>& ticks,
                  QVector<double>* sub_ticks, QVector<QString>* labels) override;

private:
    std::vector<QString> labels_;
    double label_room_ = 14, length_ = 0;
};

}  // namespace headscope::widgets

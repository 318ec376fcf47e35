// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <cstdint>
#include <vector>

#include "widgets/theme.h"

namespace headscope::widgets {

/// The types of a text's chunks beside each other, the whole text on the widget's width: neighbours of one type are one
/// run in its colour, with its letter where there is room. A click chooses a chunk.
class TypeStrip : public QWidget {
    Q_OBJECT
public:
    explicit TypeStrip(QWidget* parent = nullptr);

    /// 0 softmax, 1 linear, -1 none; `chosen`: the chunk that is framed, -1: none.
    void set_types(std::vector<std::int32_t> types, std::int64_t chosen);
    void set_theme(const Theme& theme);
    const std::vector<std::int32_t>& types() const { return types_; }
    /// The chunk at a place of the widget; -1: none.
    std::int64_t chunk_at(QPoint place) const;

    QSize sizeHint() const override { return {300, fontMetrics().height() + 4}; }
    QSize minimumSizeHint() const override { return {60, fontMetrics().height() + 4}; }

Q_SIGNALS:
    void chosen(qint64 chunk);

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;

private:
    double left_of(std::size_t chunk) const;

    std::vector<std::int32_t> types_;
    std::int64_t chosen_ = -1;
    Theme theme_;
};

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <utility>
#include <vector>

#include "widgets/plots/head_ruler.h"
#include "widgets/theme.h"
#include "widgets/views/overview/overview_cells.h"

namespace headscope::widgets {

/// Content of the overview's heat map.
struct GridContent {
    struct Row {
        QString label;
        std::int64_t heads = 0, group = 1;  ///< group: heads that share keys
        std::size_t first = 0;              ///< its head 0 among the cells
        bool matrix = true;                 ///< false: a layer without token mixing weights
        bool done = true;                   ///< false: not analysed yet
    };
    std::vector<Row> rows;
    HeatCells cells;
    bool of_layer = false;  ///< one value a row
    /// By cell; empty: none.
    std::vector<bool> dimmed, marked, off;
};

/// Layers (sites) down, heads across, a colour each. A click chooses, a double click or Enter opens, arrows move.
class HeadGrid : public QWidget {
    Q_OBJECT
public:
    explicit HeadGrid(QWidget* parent = nullptr);

    void set_content(GridContent content);
    const GridContent& content() const { return content_; }
    void set_theme(const Theme& theme);
    void set_selected(std::int64_t row, std::int64_t head);

    QRect cell(std::int64_t row, std::int64_t head) const;
    QColor colour(std::int64_t row, std::int64_t head) const;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

Q_SIGNALS:
    void pointed(qint64 row, qint64 head);  ///< -1, -1: at none
    void chosen(qint64 row, qint64 head);
    void opened(qint64 row, qint64 head);
    void stepped(int rows, int heads);
    void mark_wanted();  ///< Space
    void menu_wanted(qint64 row, qint64 head, const QPoint& global);

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;

private:
    struct Hit {
        std::int64_t row = -1, head = -1;
    };
    Hit at(const QPointF& place) const;
    void lay_out();
    void draw_axes(QPainter& painter) const;
    void draw_row(QPainter& painter, std::int64_t row) const;
    void draw_cell(QPainter& painter, const QRect& rect, std::size_t index, const QColor& fill) const;
    void draw_selected(QPainter& painter) const;

    GridContent content_;
    Theme theme_;
    std::int64_t columns_ = 0, selected_row_ = 0, selected_head_ = 0;
    Hit pointed_;
    int left_ = 0, top_ = 0, cell_height_ = 1;
    HeadRuler ruler_;
    bool values_ = false;  ///< fit into the cells
};

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractScrollArea>
#include <QPixmap>
#include <QTimer>
#include <memory>
#include <vector>

#include "core/figures/figure_data.h"
#include "widgets/plots/figure/figure_layout.h"
#include "widgets/plots/figure/figure_spots.h"
#include "widgets/theme.h"

class QCustomPlot;

namespace headscope::widgets {

/// A recipe's figure on the screen, by the layout and the plot that export draws: as wide as the widget, panels higher
/// or lower than on paper where that fills it, scrolled where it is still taller. Laid out at most once a turn of the
/// event loop; where that takes long, not before resizing pauses, and the old picture is stretched meanwhile.
class FigureView : public QAbstractScrollArea {
    Q_OBJECT
public:
    explicit FigureView(QWidget* parent = nullptr);
    ~FigureView() override;

    /// Null: nothing. The table of numbers is not used and may be missing.
    void set_figure(std::shared_ptr<const figures::FigureData> figure);
    const figures::FigureData* figure() const { return given_.get(); }
    /// A layout or its picture is still to come: slow ones wait for a pause, and a machine that is busy makes any slow.
    bool waits() const { return timer_.isActive() || waits_ || undrawn_; }
    /// True if any figure of the program waits.
    static bool any_waits();
    void set_theme(const Theme& theme);

    /// Marks what shows that head: a panel's frame, a ridge's band, a curve, a cell.
    struct Selected {
        std::int64_t analysis = 0;  ///< index of the figure's file
        std::int64_t site = 0, head = 0;
        bool operator==(const Selected&) const = default;
    };
    void set_selected(std::vector<Selected> selected);
    const std::vector<FigureMark>& marks() const { return marks_; }

    /// `place` in the viewport. Nothing where the figure is not laid out yet.
    FigureSpot spot(QPoint place) const;
    /// Rectangle of a panel in the viewport; empty if it is not visible.
    QRect panel_rect(int panel) const;
    /// Middle of a ridge's band in the viewport.
    QPoint row_point(int panel, int row) const;
    /// Middle of a cell in the viewport.
    QPoint cell_point(int panel, int row, int column) const;

    QSize sizeHint() const override { return {480, 360}; }
    QSize minimumSizeHint() const override { return {160, 120}; }

Q_SIGNALS:
    void clicked(const figures::Subject& subject);
    void pointed(const QString& text);  ///< what is under the pointer; empty: nothing
    void laid_out();                    ///< the picture is that of the figure and the size

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void scrollContentsBy(int dx, int dy) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool viewportEvent(QEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    void lay_out_soon();
    void lay_out();
    void fill_height(const FigureStyle& style, double room);
    void set_scroll_range();
    void draw();
    void draw_part(const QRect& part);
    void draw_marks(QPainter& painter) const;
    void find_marks();
    void mark_curve(QPainter* painter, const figures::Curves& curves, const FigureMark& mark) const;
    double scale() const;  ///< pixels of the widget a unit
    QPointF to_units(QPoint place) const;

    std::shared_ptr<const figures::FigureData> given_;
    figures::FigureData shown_;  ///< `given_` with panels of the screen's height
    FigureLayout layout_;
    std::unique_ptr<QCustomPlot> plot_, old_;  ///< an old one has hundreds of parts, which go in a turn of their own
    Theme theme_;
    std::vector<Selected> selected_;
    std::vector<FigureMark> marks_;
    QTimer timer_;
    bool waits_ = false;    ///< for its turn
    bool undrawn_ = false;  ///< laid out; the picture is of before
    qint64 cost_ = 0;       ///< ms of the last layout and its picture
    QSize size_;            ///< of the laid-out figure, in pixels of the widget
    int width_ = 0;         ///< of the viewport that it was laid out for
    QPixmap picture_;
    QRect drawn_;  ///< the part of the figure that the pictures show
    QPoint pressed_;
};

}  // namespace headscope::widgets

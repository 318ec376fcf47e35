// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPixmap>
#include <QWidget>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/figures/figure_data.h"
#include "widgets/theme.h"

namespace headscope::widgets {

/// A plot that is looked at while it grows: several lines over a common x axis, a cursor that reads all of them, zoom
/// and pan along x. The y axis fits what is seen. Lines come thinned (core/workspace/run_curves.h): each paint draws
/// every point of them. Drag: move; wheel: zoom; double click or 0: all; arrows: the cursor; click: chosen().
class CurvePlot final : public QWidget {
    Q_OBJECT
public:
    struct Points {
        std::vector<double> x, y;  ///< x ascending; a NaN in y ends a stretch
    };
    enum class Look { faint, line, dots };
    struct Line {
        QString name;  ///< empty: not read out
        QColor colour;
        Look look = Look::line;
        std::shared_ptr<const Points> points;
        int id = -1;  ///< argument of chosen(); equal ids belong together
    };
    struct Mark {
        double x = 0;
        QString text;  ///< drawn at the top where there is room
        QColor colour;
        bool strong = false;
    };
    using Range = std::pair<double, double>;
    using Words = std::function<QString(double)>;

    explicit CurvePlot(QWidget* parent = nullptr);

    void set_title(const QString& title);
    void set_x(const QString& label, figures::ScaleKind scale = figures::ScaleKind::linear, Words words = {});
    void set_y(const QString& label, figures::ScaleKind scale = figures::ScaleKind::linear, Words words = {});
    /// Always part of the y axis.
    void set_y_least(std::optional<double> value);
    void set_lines(std::vector<Line> lines);
    void set_marks(std::vector<Mark> marks);
    void set_theme(const Theme& theme);
    /// Empty: the whole range. range_changed() reports the user's changes.
    void set_range(std::optional<Range> range);
    std::optional<Range> range() const { return range_; }
    void set_cursor(std::optional<double> x);
    std::optional<double> cursor() const { return cursor_; }
    /// Lines of this id are drawn thick, the others stay; -1: none.
    void set_stressed(int id);
    /// Names at the right ends of lines, where they do not meet.
    void set_end_names(bool names);

    /// Values at the cursor, one line a curve.
    QStringList readings() const;
    /// Values and texts of the y axis; none while there is nothing to draw.
    const std::vector<std::pair<double, QString>>& y_ticks() const { return y_ticks_; }
    const std::vector<std::pair<double, QString>>& x_ticks() const { return x_ticks_; }
    /// Pixels of the plotting area, and where a value is in it.
    QRect plot_area() const;
    double x_to_pixel(double x) const;
    double pixel_to_x(double pixel) const;

    QSize sizeHint() const override { return {360, 180}; }
    QSize minimumSizeHint() const override { return {120, 84}; }

Q_SIGNALS:
    void range_changed();
    void cursor_moved();
    void chosen(double x, int id);  ///< id of the line under the pointer; -1: none

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    void renew();
    void fit();  ///< axes_ for what is there and what is seen
    void fit_x_ticks();
    Range all_x() const;
    Range shown_x() const;
    void user_range(Range range);
    void zoom(double factor, double about);
    void step_cursor(int steps);
    double y_to_pixel(double y) const;
    int line_at(const QPointF& place) const;
    static std::optional<std::size_t> nearest(const Points& points, double x);
    bool can_be_drawn(double y) const;
    std::vector<std::size_t> few_points(const Points& points, std::ptrdiff_t begin, std::ptrdiff_t end) const;
    void draw_frame(QPainter& painter) const;
    void draw_lines(QPainter& painter) const;
    void draw_marks(QPainter& painter) const;
    void draw_cursor(QPainter& painter) const;
    void draw_end_names(QPainter& painter) const;
    QFont small_font() const;

    Theme theme_;
    QString title_, x_label_, y_label_;
    figures::ScaleKind x_scale_ = figures::ScaleKind::linear, y_scale_ = figures::ScaleKind::linear;
    Words x_words_, y_words_;
    std::vector<Line> lines_;
    std::vector<Mark> marks_;
    std::optional<Range> range_;
    std::optional<double> cursor_, least_;
    int stressed_ = -1;

    QRect area_;
    Range x_{0, 1}, y_{0, 1};  ///< of the axes, in scaled() coordinates
    std::vector<std::pair<double, QString>> x_ticks_, y_ticks_;
    QPixmap picture_;
    bool outdated_ = true, dragging_ = false, end_names_ = false, empty_ = true;
    QPointF pressed_;
    Range pressed_range_;
};

}  // namespace headscope::widgets

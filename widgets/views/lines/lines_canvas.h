// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractScrollArea>
#include <QImage>
#include <QTimer>
#include <memory>
#include <optional>
#include <vector>

#include "widgets/theme.h"
#include "widgets/views/lines/window_weights.h"

namespace headscope::widgets {

/// Queries at the left, keys at the right, a line for each weight: as wide and as strong as it is large, in its head's
/// color. Pointing at a token fades the other tokens' lines and shows its weights; a click chooses it. Lines are
/// drawn into an image a slice at a time, so that thousands of them hold nothing up.
class LinesCanvas : public QAbstractScrollArea {
    Q_OBJECT
public:
    struct Head {
        int head = 0;
        QColor colour;
        std::shared_ptr<const WindowWeights> weights;  ///< null: not there yet
        bool operator==(const Head&) const = default;
    };
    struct Content {
        TokenWindow window;
        std::vector<QString> queries, keys;                    ///< labels of the window's tokens
        std::vector<std::int32_t> query_regions, key_regions;  ///< of a pair, one a label: 0 inserted, 1 A, 2 B
        std::int64_t all_queries = 0, all_keys = 0;
        std::vector<Head> heads;
        double threshold = 0.05;
        bool operator==(const Content&) const = default;
    };
    enum class Side { query, key };

    explicit LinesCanvas(QWidget* parent = nullptr);
    void set_content(Content content);
    const Content& content() const { return content_; }
    void set_theme(const Theme& theme);
    /// Counted in the whole text.
    void set_chosen(std::optional<std::int64_t> query, std::optional<std::int64_t> key);
    void show_query(std::int64_t query);

    std::int64_t lines_found() const { return found_; }  ///< of at least the threshold
    std::int64_t lines_drawn() const { return std::ssize(lines_); }
    bool complete() const { return painted_ == lines_.size(); }
    /// Place of a token's label on the viewport; counted in the whole text.
    QRect label_rect(Side side, std::int64_t token) const;
    std::optional<std::pair<Side, std::int64_t>> token_at(const QPoint& place) const;
    QString pointed_text() const;  ///< description of the token pointed at

Q_SIGNALS:
    void clicked(int side, qint64 token);
    void pointed();
    void stepped(int tokens);

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void scrollContentsBy(int dx, int dy) override;
    bool viewportEvent(QEvent* event) override;

private:
    using Token = std::pair<Side, std::int64_t>;
    void lay_out();
    void draw_again();
    void draw_more();
    void point_at(std::optional<Token> token);
    int row_top(Side side, std::int64_t row) const;  ///< in the content; row -1 and one past the last: what is outside
    double middle(Side side, std::int64_t row) const;
    const std::vector<QString>& labels(Side side) const;
    std::int64_t first(Side side) const;
    std::vector<WeightLine> pointed_lines() const;
    void draw_line(QPainter& painter, const WeightLine& line, double strength) const;
    void paint_labels(QPainter& painter, Side side) const;
    void paint_outside(QPainter& painter) const;
    void paint_weights(QPainter& painter) const;
    QString outside_text(bool before) const;

    Content content_;
    Theme theme_;
    std::optional<std::int64_t> query_, key_;
    std::optional<Token> pointed_;
    std::vector<WeightLine> lines_;
    std::int64_t found_ = 0;
    QImage image_;
    std::size_t painted_ = 0;
    QTimer timer_;
    int row_height_ = 20, left_ = 0, right_ = 0, label_width_ = 100;
};

}  // namespace headscope::widgets

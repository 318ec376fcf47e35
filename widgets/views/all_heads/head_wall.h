// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractScrollArea>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "widgets/plots/head_ruler.h"
#include "widgets/plots/map/head_thumbnails.h"
#include "widgets/theme.h"

namespace headscope::widgets {

/// Thumbnails of all heads, layers (sites) down and heads across, of any size; only those in view are held and drawn.
/// The wheel changes their size at the pointer, dragging moves them; a click chooses, a double click or Enter opens.
class HeadWall : public QAbstractScrollArea {
    Q_OBJECT
public:
    static constexpr std::array kSizes{24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256};

    struct Row {
        QString label;
        std::int64_t heads = 0, group = 1;
        bool matrix = true, done = true;
        bool operator==(const Row&) const = default;
    };

    explicit HeadWall(QWidget* parent = nullptr);

    /// Forgets all images when the rows are others.
    void set_rows(std::vector<Row> rows);
    /// `key`: what it was made for. An older one is drawn, scaled, until it comes.
    void set_strip(std::int64_t row, const std::string& key, std::shared_ptr<const ThumbnailStrip> strip);
    /// Key of the shown strip; empty: none is shown.
    const std::string& key(std::int64_t row) const;
    void forget_images();
    void set_theme(const Theme& theme);
    void set_selected(std::int64_t row, std::int64_t head);
    /// By row and head; empty: none.
    void set_marked(std::vector<std::vector<bool>> marked);
    /// The same for heads that stand back.
    void set_dimmed(std::vector<std::vector<bool>> dimmed);

    int size() const { return size_; }
    /// Takes the nearest of kSizes; the middle of the view stays in place.
    void set_size(int size);
    /// The largest at which all heads of a layer are seen.
    void fit();
    /// First and last row in view; last < first: none.
    std::pair<std::int64_t, std::int64_t> visible_rows() const;
    /// On the viewport.
    QRect tile(std::int64_t row, std::int64_t head) const;
    /// True if the shown strip has the requested size.
    bool exact(std::int64_t row) const;

Q_SIGNALS:
    void visible_changed();  ///< other rows, or their size
    void size_changed(int size);
    void pointed(qint64 row, qint64 head);
    void chosen(qint64 row, qint64 head);
    void opened(qint64 row, qint64 head);
    void stepped(int rows, int heads);
    void mark_wanted();
    void fit_wanted();

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void scrollContentsBy(int dx, int dy) override;
    bool viewportEvent(QEvent* event) override;

private:
    struct Hit {
        std::int64_t row = -1, head = -1;
    };
    struct Held {
        std::string key;
        std::shared_ptr<const ThumbnailStrip> strip;
    };
    Hit at(const QPointF& place) const;
    void lay_out();
    /// Keeps what lies under `anchor` (on the viewport) there.
    void resize_at(int size, const QPointF& anchor);
    void show_selected();
    void drop_far_images();
    void draw_tile(QPainter& painter, std::int64_t row, std::int64_t head) const;
    void draw_labels(QPainter& painter) const;

    std::vector<Row> rows_;
    std::vector<Held> held_;
    std::vector<std::vector<bool>> marked_, dimmed_;
    Theme theme_;
    std::int64_t columns_ = 0, selected_row_ = 0, selected_head_ = 0;
    int size_ = 96, gap_ = 4, left_ = 0, top_ = 0;
    HeadRuler ruler_;
    Hit pointed_;
    QPoint pressed_, scrolled_;
    bool holding_ = false, dragging_ = false;
    int turned_ = 0;  ///< of the wheel, eighths of a degree that made no step yet
};

}  // namespace headscope::widgets

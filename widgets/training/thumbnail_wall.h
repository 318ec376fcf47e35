// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QImage>
#include <QWidget>

#include "widgets/theme.h"

namespace headscope::widgets {

/// All heads of a run at one step as small maps, a row a layer: a click or the arrows choose one.
class ThumbnailWall : public QWidget {
    Q_OBJECT
public:
    explicit ThumbnailWall(QWidget* parent = nullptr);
    /// Null: `note` in its place.
    void set(const QImage& wall, std::int64_t sites, std::int64_t heads, const QString& note);
    void set_chosen(std::int64_t site, std::int64_t head);
    void set_theme(const Theme& theme);
    /// Pixels that a picture may take.
    QSize room() const;
    QSize sizeHint() const override { return {260, 200}; }
    QSize minimumSizeHint() const override { return {90, 70}; }

Q_SIGNALS:
    void chosen(qint64 site, qint64 head);
    void resized();

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    QRectF area() const;
    bool find(const QPointF& place, std::int64_t& site, std::int64_t& head) const;

    QImage wall_;
    std::int64_t sites_ = 0, heads_ = 0, site_ = 0, head_ = 0;
    QString note_;
    Theme theme_;
};

}  // namespace headscope::widgets

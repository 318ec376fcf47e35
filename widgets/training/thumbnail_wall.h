// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QImage>
#include <QStringList>
#include <QWidget>

#include "widgets/theme.h"

namespace headscope::widgets {

/// All heads of a run at one step as small maps, a row a layer: a click or the arrows choose one.
class ThumbnailWall : public QWidget {
    Q_OBJECT
public:
    explicit ThumbnailWall(QWidget* parent = nullptr);
    /// `labels` and `titles` name the sites, in rows and in tool tips. Null image: draws `note` instead.
    void set(const QImage& wall, const QStringList& labels, const QStringList& titles, std::int64_t heads,
             const QString& note);
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

    QString head_words(std::int64_t site, std::int64_t head) const;
    QFont small_font() const;
    std::int64_t sites() const { return labels_.size(); }

    QImage wall_;
    QStringList labels_, titles_;
    int left_ = 30;  ///< pixels that the labels take
    std::int64_t heads_ = 0, site_ = 0, head_ = 0;
    QString note_;
    Theme theme_;
};

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractScrollArea>
#include <QTimer>
#include <vector>

#include "widgets/panels/text_choice.h"
#include "widgets/theme.h"

namespace headscope::widgets {

/// Tokens as chips that wrap like words: special ones outlined, parts of one character joined, the id on hover. Laid
/// out a slice at a time, so that a long text does not hold up the window.
class TokenChips : public QAbstractScrollArea {
    Q_OBJECT
public:
    explicit TokenChips(QWidget* parent = nullptr);
    void set_chips(std::vector<TokenPreview::Chip> chips);
    void set_theme(const Theme& theme);
    /// The chip under a point of the viewport; -1: none.
    int chip_at(const QPoint& place) const;
    std::size_t laid_out() const { return places_.size(); }

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    bool viewportEvent(QEvent* event) override;

private:
    void begin_layout();
    void lay_out_more();
    int row_height() const;

    struct Place {
        int x = 0, row = 0, width = 0;
    };
    std::vector<TokenPreview::Chip> chips_;
    std::vector<Place> places_;
    int x_ = 0, row_ = 0;
    Theme theme_;
    QTimer timer_;
};

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <memory>

#include "widgets/theme.h"
#include "widgets/views/tensors/tensor_source.h"

namespace headscope::widgets {

/// How often values of a tensor occur, in bins of equal width; heights by the logarithm, so that few outliers show.
class ValueHistogram : public QWidget {
    Q_OBJECT
public:
    explicit ValueHistogram(QWidget* parent = nullptr);
    /// Null: empty.
    void set_numbers(std::shared_ptr<const TensorNumbers> numbers);
    void set_theme(const Theme& theme);
    QSize sizeHint() const override { return {260, 150}; }
    QSize minimumSizeHint() const override { return {120, 90}; }

protected:
    void paintEvent(QPaintEvent* event) override;
    bool event(QEvent* event) override;

private:
    QRectF plot() const;

    std::shared_ptr<const TensorNumbers> numbers_;
    Theme theme_;
};

}  // namespace headscope::widgets

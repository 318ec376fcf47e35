// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QScrollArea>
#include <memory>

#include "widgets/theme.h"
#include "widgets/views/tensors/tensor_source.h"

class QGridLayout;
class QLabel;
class QProgressBar;
class QPushButton;

namespace headscope::widgets {

class ValueHistogram;

/// One tensor: what the file says of it and, when somebody asks, what its numbers are like.
class TensorDetails : public QScrollArea {
    Q_OBJECT
public:
    explicit TensorDetails(QWidget* parent = nullptr);

    void show_nothing(const QString& hint);
    void show_tensor(const TensorRow& row, const QString& file);
    void show_progress(double share);
    void show_numbers(std::shared_ptr<const TensorNumbers> numbers);
    void show_failure(const QString& message);
    void set_theme(const Theme& theme);

Q_SIGNALS:
    void numbers_wanted();
    void stop_wanted();

private:
    enum class Mode { nothing, asking, reading, numbers, failed };
    void set_mode(Mode mode);
    void fill(QGridLayout* grid, const std::vector<std::pair<QString, QString>>& rows);

    QLabel *name_, *status_, *failure_, *hint_;
    QWidget *facts_, *values_;
    QGridLayout *fact_grid_, *value_grid_;
    QPushButton *read_, *stop_;
    QProgressBar* progress_;
    ValueHistogram* histogram_;
};

}  // namespace headscope::widgets

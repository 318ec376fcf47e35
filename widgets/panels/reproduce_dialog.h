// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "widgets/panels/task_dialog.h"

class QCheckBox;
class QComboBox;
class QDoubleSpinBox;
class QLabel;
class QSpinBox;

namespace headscope::widgets {

/// `headscope reproduce`: replays a paper small, and opens its report.
class ReproduceDialog : public TaskDialog {
    Q_OBJECT
public:
    struct Paper {
        QString name, title, summary;
    };
    /// `minutes`: the usual ones.
    ReproduceDialog(const std::vector<Paper>& papers, double minutes, QWidget* parent = nullptr);

    QStringList words() const override;
    QString problem() const override;
    QString output() const override;

private:
    std::vector<Paper> papers_;
    QComboBox* paper_;
    QLabel* summary_;
    QDoubleSpinBox* minutes_;
    QSpinBox *seeds_, *threads_;
    QLineEdit *folder_, *data_;
    QCheckBox* resume_;
};

}  // namespace headscope::widgets

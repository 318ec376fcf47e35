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
    /// Requests the outlook of what is chosen.
    void ask_outlook();
    /// `warning`: `minutes` cannot decide this paper's claims; empty: they can, or no calibration exists.
    void set_outlook(const QString& paper, double minutes, const QString& warning);

Q_SIGNALS:
    void outlook_wanted(const QString& paper, double minutes, int seeds, int threads);

private:
    const Paper& chosen() const;

    std::vector<Paper> papers_;
    QComboBox* paper_;
    QLabel *summary_, *warning_;
    QDoubleSpinBox* minutes_;
    QSpinBox *seeds_, *threads_;
    QLineEdit *folder_, *data_, *data_sets_;
    QCheckBox* resume_;
};

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

#include "widgets/panels/evaluate_choice.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QListWidget;
class QPushButton;
class QSpinBox;

namespace headscope::widgets {

/// Asks what is to be evaluated: models, tasks, where their data are. Knows no model: its owner passes what it offers.
/// What cannot be evaluated is shown with the reason.
class EvaluateDialog : public QDialog {
    Q_OBJECT
public:
    explicit EvaluateDialog(QWidget* parent = nullptr);

    /// What is ticked stays ticked, as far as it is there; of models that are new those that can be evaluated are not
    /// ticked, but where it is the only one.
    void set_offer(const EvaluateOffer& offer);
    void set_choice(const EvaluateChoice& choice);
    EvaluateChoice choice() const;
    /// Something is being evaluated: another one waits.
    void set_busy(bool busy);

Q_SIGNALS:
    void evaluate_wanted(const QStringList& words, const QStringList& names);  ///< of the command; of the models
    void changed();                                                            ///< choice() is another one

private:
    void build();
    void take_set();
    void update_state();

    EvaluateOffer offer_;
    QListWidget *models_ = nullptr, *tasks_ = nullptr;
    QComboBox* set_ = nullptr;
    QLineEdit *data_ = nullptr, *lengths_ = nullptr, *command_ = nullptr;
    QSpinBox *shots_ = nullptr, *limit_ = nullptr;
    QCheckBox* baselines_ = nullptr;
    QLabel* problem_ = nullptr;
    QPushButton* evaluate_ = nullptr;
    bool filling_ = false, busy_ = false;
};

}  // namespace headscope::widgets

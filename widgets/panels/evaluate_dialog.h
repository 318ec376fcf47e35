// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

#include "widgets/device_box.h"
#include "widgets/panels/evaluate_choice.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QListWidget;
class QPushButton;
class QSpinBox;
class QToolButton;

namespace headscope::widgets {

/// Asks for models, tasks and their data. Knows no model: its owner passes the offer. Models that cannot be evaluated
/// are listed with the reason.
class EvaluateDialog : public QDialog {
    Q_OBJECT
public:
    explicit EvaluateDialog(QWidget* parent = nullptr);

    /// Ticks stay. A new model is ticked where it is the only one.
    void set_offer(const EvaluateOffer& offer);
    void set_choice(const EvaluateChoice& choice);
    EvaluateChoice choice() const;
    /// A file, folder or corpus for the tasks.
    void set_data(const QString& paths);
    /// GPUs of the machine; without any there is no choice of a device.
    void set_devices(const std::vector<DeviceCard>& devices);
    /// While an evaluation runs none can be started.
    void set_busy(bool busy);

Q_SIGNALS:
    void evaluate_wanted(const QStringList& words, const QStringList& names);  ///< of the command; of the models
    void changed();                                                            ///< choice() is another one
    void text_wanted(const QString& title, const QString& content);            ///< to be written; then set_data()

private:
    void build();
    void fill_texts();
    void take_set();
    void update_state();

    EvaluateOffer offer_;
    QListWidget *models_ = nullptr, *tasks_ = nullptr;
    QComboBox* set_ = nullptr;
    QLineEdit *data_ = nullptr, *lengths_ = nullptr, *command_ = nullptr;
    QSpinBox *shots_ = nullptr, *limit_ = nullptr;
    QCheckBox* baselines_ = nullptr;
    DeviceBox* device_ = nullptr;
    QLabel *device_label_ = nullptr, *problem_ = nullptr;
    QPushButton* evaluate_ = nullptr;
    QToolButton* texts_ = nullptr;
    bool filling_ = false, busy_ = false;
};

}  // namespace headscope::widgets

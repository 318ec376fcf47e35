// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>
#include <QStringList>

#include "widgets/plain_controls.h"

class QFormLayout;
class QLabel;
class QLineEdit;
class QProgressBar;
class QPushButton;

namespace headscope::widgets {

/// A command of the command line as a dialog: its fields, the command that they make, progress, and the result, which
/// opens. The owner runs the command; the dialog may be closed meanwhile.
class TaskDialog : public QDialog {
    Q_OBJECT
public:
    TaskDialog(const char* name, const QString& title, const QString& about, QWidget* parent);

    /// Arguments of the command line, with the output.
    virtual QStringList words() const = 0;
    /// Why the command cannot be started yet; empty: it can.
    virtual QString problem() const = 0;
    /// Path by which the result is opened.
    virtual QString output() const = 0;

    /// `ours`: it is this dialog's command that runs; else another one does, and this one waits.
    void set_running(bool running, bool ours);
    void set_progress(const QString& words);  ///< "40 %  layer 3"
    void set_result(const QString& words);
    void set_failure(const QString& words);

Q_SIGNALS:
    void start_wanted(const QStringList& words, const QString& output);
    void stop_wanted();
    void open_wanted(const QString& output);

protected:
    QFormLayout* form() const { return form_; }
    /// Names a control and connects it to update_state() by its owner.
    template <class Control>
    Control* named(Control* control, const char* name, const QString& label, const QString& tip) {
        return described(control, objectName() + QLatin1Char('_') + QLatin1String(name), label, tip);
    }
    enum class Wants { new_folder, folder, files };
    /// A line for paths with a button that asks for them.
    QLineEdit* add_path(const char* name, const QString& label, const QString& tip, Wants wants);
    void update_state();

private:
    QFormLayout* form_;
    QLineEdit* command_;
    QLabel *message_, *progress_words_;
    QProgressBar* progress_;
    QPushButton *start_, *stop_, *open_;
    QString result_;  ///< output of the command that was done
    QString started_;
    bool running_ = false, ours_ = false;
};

}  // namespace headscope::widgets

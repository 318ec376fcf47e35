// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "core/training/job/job_keys.h"
#include "widgets/desk/job_draft.h"
#include "widgets/theme.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QToolButton;

namespace headscope::widgets {

/// One key of a job: its name, a control of its kind, and below it what is wrong with what was typed.
class JobField : public QWidget {
    Q_OBJECT
public:
    JobField(const training::JobKey& key, JobDraft* draft, QWidget* parent = nullptr);

    /// Takes the draft's value, unless the user is typing something else that was refused.
    void follow();
    void set_choices(const JobChoices& choices);
    /// Empty: nothing is wrong.
    void set_problem(const QString& text);
    QString problem() const;
    QWidget* control() const;

Q_SIGNALS:
    void refused(const QString& text);
    void entered();

protected:
    bool eventFilter(QObject* object, QEvent* event) override;

private:
    QString written() const;  ///< the draft's value as the control shows it
    void apply();
    void choose_files(bool folder);

    const training::JobKey& key_;
    JobDraft* draft_;
    QLabel* label_;
    QLineEdit* line_ = nullptr;
    QComboBox* combo_ = nullptr;
    QLabel* problem_;
    bool following_ = false, own_problem_ = false;
};

/// "Learning rate" of "learning_rate".
QString words_of_key(const std::string& name);

}  // namespace headscope::widgets

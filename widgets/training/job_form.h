// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QScrollArea>
#include <map>
#include <string>
#include <vector>

#include "core/training/job/job_keys.h"
#include "widgets/desk/job_draft.h"
#include "widgets/theme.h"

class QCheckBox;
class QLabel;
class QLineEdit;
class QVBoxLayout;

namespace headscope::widgets {

class JobField;

/// A job as a form: a row for each key of the job's table, section after section. Refused values are reported under
/// their field. The usual keys come first; a search shows any.
class JobForm : public QWidget {
    Q_OBJECT
public:
    explicit JobForm(JobDraft* draft, QWidget* parent = nullptr);

    void set_theme(const Theme& theme);
    /// Keys that few change are shown too.
    void set_all(bool all);
    bool all() const { return all_; }
    /// Shows the field of that key and gives it the focus.
    void show_key(const QString& key);

Q_SIGNALS:
    void all_changed(bool all);
    void focused(const QString& key);  ///< the user is in that field

private:
    void build();
    void follow();  ///< the draft's values and problem
    void filter();

    struct Row {
        const training::JobKey* key;
        JobField* field;
        bool usual = false;
    };
    struct Section {
        QString name;
        QLabel* title;
        std::vector<std::size_t> rows;
    };

    JobDraft* draft_;
    QLineEdit* find_;
    QScrollArea* scroll_;
    QLabel* none_;
    std::vector<Row> rows_;
    std::vector<Section> sections_;
    bool all_ = false;
    QCheckBox* all_box_;
};

}  // namespace headscope::widgets

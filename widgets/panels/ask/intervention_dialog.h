// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

#include "core/workspace/intervention_list.h"
#include "widgets/panels/text_choice.h"

class QLabel;
class QPushButton;
class QTableWidget;

namespace headscope::widgets {

class PlainEdit;

/// Interventions as a table and as the TOML text that it writes: an edit of one changes the other. Reads and writes no
/// file: its owner does.
class InterventionDialog : public QDialog {
    Q_OBJECT
public:
    explicit InterventionDialog(QWidget* parent = nullptr);

    void set_interventions(const InterventionText& interventions);
    InterventionText interventions() const;
    /// Appends rows to the table.
    void add_rows(const std::vector<workspace::InterventionRow>& rows);

Q_SIGNALS:
    /// The next runs use them; empty: none.
    void applied(const headscope::widgets::InterventionText& interventions);
    void read_wanted(const QString& path);
    void save_wanted(const QString& path, const QString& toml);

private:
    void build();
    void add_row(const workspace::InterventionRow& row);
    void remove_rows();
    void take_table();
    void take_text();
    std::vector<workspace::InterventionRow> rows() const;
    void show_problem(const QString& problem);
    void ask_where_to_save();

    QTableWidget* table_ = nullptr;
    PlainEdit* text_ = nullptr;
    QLabel *place_shown_ = nullptr, *problem_ = nullptr;
    QPushButton *apply_ = nullptr, *save_ = nullptr;
    QString place_;
    bool filling_ = false;
};

}  // namespace headscope::widgets

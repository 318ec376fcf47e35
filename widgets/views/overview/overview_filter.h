// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStringListModel>
#include <QWidget>
#include <memory>
#include <vector>

#include "core/workspace/head_table.h"

class QCompleter;
class QLabel;
class QLineEdit;

namespace headscope::widgets {

/// The field that picks heads ("sink > 0.3 and layer < 4", workspace::HeadFilter), completes names, and says under
/// itself, with the place marked, what it does not understand.
class FilterField : public QWidget {
    Q_OBJECT
public:
    explicit FilterField(QWidget* parent = nullptr);

    /// Sets the table whose columns and heads the filter names.
    void set_table(std::shared_ptr<const workspace::HeadTable> table);
    QString text() const;
    void set_text(const QString& text);
    QLineEdit* line() const { return line_; }

    /// By row: which match; empty when nothing is filtered. While the text is wrong, what it picked before stays.
    const std::vector<bool>& matches() const { return matches_; }
    std::size_t count() const;
    /// Empty: the text is fine. Else "character 8: expected …, found …".
    QString error() const { return error_; }

Q_SIGNALS:
    void changed();

private:
    void apply();
    void show_error(const QString& expected, const QString& found, std::size_t byte);
    void offer_names();
    void take_name(const QString& name);
    /// Begin of the word that the cursor stands in or behind.
    int word_begin() const;

    QLineEdit* line_;
    QLabel* message_;
    QCompleter* completer_;
    QStringListModel names_;
    std::shared_ptr<const workspace::HeadTable> table_;
    std::vector<bool> matches_;
    QString error_;
};

}  // namespace headscope::widgets

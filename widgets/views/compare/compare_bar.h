// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "widgets/views/compare/sides.h"

class QButtonGroup;
class QComboBox;
class QLabel;
class QToolButton;

namespace headscope::widgets {

class FlowLayout;

enum class CompareMode { maps, heads, text };

/// The controls of a comparison: how it is shown, the baseline on the left, the right side, swap. One of the sides is
/// the selection, the other one is chosen here.
class CompareBar : public QWidget {
    Q_OBJECT
public:
    explicit CompareBar(QWidget* parent);

    /// Shows the choices without emitting.
    void show_choice(const Desk& desk, const CompareSides& sides, const CompareChoice& choice);
    void set_mode(CompareMode mode);

Q_SIGNALS:
    void mode_chosen(headscope::widgets::CompareMode mode);
    void choice_changed(const headscope::widgets::CompareChoice& choice);
    void swap_wanted();

private:
    QComboBox* add_combo(const char* name, const QString& title, const QString& tip);
    void tell();
    void arrange(bool selected_right);

    QButtonGroup* modes_;
    FlowLayout* flow_;
    QLabel *left_, *right_;  ///< before what is on that side; the name of the selection, too
    QComboBox *study_, *sequence_, *site_, *head_;
    QToolButton* swap_;
    bool swapped_ = false;
    std::optional<bool> arranged_;  ///< with the selection on the right
};

}  // namespace headscope::widgets

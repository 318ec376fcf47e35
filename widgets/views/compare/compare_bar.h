// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "widgets/views/compare/sides.h"

class QButtonGroup;
class QComboBox;
class QLabel;
class QToolButton;

namespace headscope::widgets {

enum class CompareMode { maps, heads, text };

/// The controls of a comparison: how it is shown, what the right side is, swap.
class CompareBar : public QWidget {
    Q_OBJECT
public:
    explicit CompareBar(QWidget* parent);

    /// Shows them without telling.
    void show_choice(const Desk& desk, const CompareSides& sides, const RightChoice& choice);
    void set_mode(CompareMode mode);

Q_SIGNALS:
    void mode_chosen(headscope::widgets::CompareMode mode);
    void choice_changed(const headscope::widgets::RightChoice& choice);
    void swap_wanted();

private:
    QComboBox* add_combo(const char* name, const QString& title, const QString& tip);
    void tell();

    QButtonGroup* modes_;
    QLabel* left_;
    QComboBox *study_, *sequence_, *site_, *head_;
    QToolButton* swap_;
};

}  // namespace headscope::widgets

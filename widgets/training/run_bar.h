// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <vector>

#include "widgets/desk/run_shelf.h"
#include "widgets/theme.h"

class QCheckBox;
class QLabel;
class QProgressBar;
class QPushButton;
class QSlider;
class QToolButton;

namespace headscope::widgets {

/// The runs that are open, each with its colour, and what can be done with the chosen one.
class RunBar : public QWidget {
    Q_OBJECT
public:
    explicit RunBar(RunShelf* shelf, QWidget* parent = nullptr);
    void refresh(const Theme& theme);

private:
    struct Chip {
        int id = 0;
        QWidget* box = nullptr;
        QCheckBox* shown = nullptr;
        QToolButton* name = nullptr;
    };
    void build_controls();
    QWidget* build_state();
    QWidget* build_buttons();
    QWidget* build_rate(QWidget* parent);
    void fill_chips(const Theme& theme);
    void fill_menus(const Run& run);
    void show_rate(const Run& run);
    double slider_rate() const;

    RunShelf* shelf_;
    QWidget *chips_, *controls_;
    std::vector<Chip> made_;
    QLabel* state_;
    QProgressBar* progress_;
    QPushButton *pause_, *resume_, *stop_, *evaluate_, *snapshot_, *fork_, *analyse_;
    QSlider* rate_;
    QWidget* rate_box_;
    QLabel* rate_words_;
    double peak_ = 0;  ///< that the slider is about
    int rate_of_ = 0;  ///< run
    std::vector<std::string> listed_;
};

}  // namespace headscope::widgets

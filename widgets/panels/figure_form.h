// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/figures/options/option_list.h"

class QFormLayout;
class QLabel;

namespace headscope::widgets {

/// Everything that can be chosen of a figure, as controls: made from figures::figure_options(), the list that the
/// command line is made from.
class FigureForm : public QWidget {
    Q_OBJECT
public:
    explicit FigureForm(QWidget* parent = nullptr);

    /// Shows the options of this recipe. problem() describes input that is not possible.
    void set_request(const figures::FigureRequest& request);
    figures::FigureRequest request() const { return request_; }
    QString problem() const { return problem_; }
    /// Sets whether the window is dark: a page that differs shows a note and a button to change it.
    void set_dark_window(bool dark);

Q_SIGNALS:
    void changed();

private:
    void build();
    void add(QFormLayout* form, const figures::FigureOption& option);
    void add_width(QFormLayout* form);
    void add_font(QFormLayout* form);
    void add_page_note(QFormLayout* form);
    void show_page_note();
    void set(const figures::FigureOption& option, const std::vector<std::string>& values);

    figures::FigureRequest request_;
    QString problem_;
    QWidget *fields_ = nullptr, *page_ = nullptr;
    QLabel* page_note_ = nullptr;
    bool dark_window_ = false;
};

}  // namespace headscope::widgets

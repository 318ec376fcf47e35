// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/figures/options/figure_options.h"

class QFormLayout;
class QLabel;

namespace headscope::widgets {

/// Everything that can be chosen of a figure, as controls: made from figures::figure_options(), the list that the
/// command line is made from.
class FigureForm : public QWidget {
    Q_OBJECT
public:
    explicit FigureForm(QWidget* parent = nullptr);

    /// Shows the options that this recipe has. What is typed but not possible is told by problem().
    void set_request(const figures::FigureRequest& request);
    figures::FigureRequest request() const { return request_; }
    QString problem() const { return problem_; }
    /// Whether the window is dark: a page that is not as it says so, with a way to be.
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

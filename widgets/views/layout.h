// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "widgets/desk/run_shelf.h"
#include "widgets/desk/view.h"

class QLabel;
class QListWidget;
class QTableWidget;
class QToolButton;

namespace headscope::widgets {

class CurvePlot;
class Facts;
class FittedColumns;
class LayerColumn;

/// Which layer of the job's model mixes how: a column of layers, the mixers and the paper's layouts beside it, with
/// what that costs.
class LayoutView : public View {
    Q_OBJECT
public:
    LayoutView(Desk* desk, QWidget* parent);

    QSize minimumSizeHint() const override;

protected:
    void refresh() override;
    void resizeEvent(QResizeEvent* event) override;

private:
    QWidget* make_mixers();
    QWidget* make_layouts();
    void fill_choices();
    void place_mixers();
    void show_costs();
    void fit_costs();
    void show_growth();
    /// As the job says them; the estimate, which comes later, where it does not.
    std::vector<std::string> layers() const;
    std::string other_mixer() const;  ///< that named layouts use beside standard

    JobDraft& draft_;
    LayerColumn* column_;
    QWidget* mixers_;
    QListWidget* layouts_;
    Facts* facts_;
    QTableWidget* costs_;
    FittedColumns* columns_ = nullptr;
    QLabel *costs_title_, *legend_;
    CurvePlot *decode_, *cache_;
    std::vector<QToolButton*> mixer_buttons_;
    std::vector<std::string> shown_mixers_;
    std::string last_mixer_ = "mlp";
    bool dark_ = false, filled_ = false, following_ = false;
};

}  // namespace headscope::widgets

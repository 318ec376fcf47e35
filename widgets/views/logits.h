// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "widgets/views/recipe_view.h"

namespace headscope::widgets {

/// How attention scores are distributed, before the softmax and after it: a ridge a layer or a head, with counts of
/// outliers.
class LogitsView : public RecipeView {
    Q_OBJECT
public:
    LogitsView(Desk* desk, QWidget* parent);

protected:
    void refresh() override;
    figures::FigureOptions options() const override;
    bool can_join(const Study& study) const override;
    std::vector<FigureView::Mark> marks(const figures::FigureData& figure) const override;
    void clicked(int panel, int row, int column) override;
    QString words(const figures::FigureData& figure) const override;

private:
    struct Place {
        std::int64_t site = 0, head = -1;  ///< -1: all of them
    };
    std::vector<Place> rows() const;  ///< of the selected analysis, as the recipe orders them
    int selected_row() const;         ///< -1: none

    QComboBox *by_, *stage_;
};

}  // namespace headscope::widgets

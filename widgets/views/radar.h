// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "widgets/views/recipe_view.h"

namespace headscope::widgets {

/// The indicators of every layer as small radar plots, of one analysis or of several in columns.
class RadarView : public RecipeView {
    Q_OBJECT
public:
    RadarView(Desk* desk, QWidget* parent);

protected:
    figures::FigureOptions options() const override;
    std::vector<FigureView::Mark> marks(const figures::FigureData& figure) const override;
    void clicked(int panel, int row, int column) override;

private:
    QComboBox* of_;
};

}  // namespace headscope::widgets

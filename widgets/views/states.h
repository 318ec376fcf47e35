// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "widgets/views/recipe_view.h"

namespace headscope::widgets {

/// Norms and variances of queries, keys, values and hidden states by position, with the sink token marked.
class StatesView : public RecipeView {
    Q_OBJECT
public:
    StatesView(Desk* desk, QWidget* parent);

protected:
    bool missing() override;
    figures::FigureOptions options() const override;
    bool can_join(const Study& study) const override;
    std::vector<FigureView::Mark> marks(const figures::FigureData& figure) const override;
    void clicked(int panel, int row, int column) override;
    QString words(const figures::FigureData& figure) const override;

private:
    /// The site or head that a curve's name means; empty: neither (the input, a boundary).
    std::optional<std::int64_t> member(const std::string& name) const;

    QComboBox* by_;
};

}  // namespace headscope::widgets

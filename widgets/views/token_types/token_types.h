// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/figures/token_types.h"
#include "widgets/views/recipe_view.h"

namespace headscope::widgets {

class TokenTextArea;
class TypeStrip;

/// Which chunks NAtS-L's heads give to softmax attention: the shares of all heads, texts and analyses side by side, and
/// of the selected head the type of each chunk, over the text.
class TokenTypesView : public RecipeView {
    Q_OBJECT
public:
    TokenTypesView(Desk* desk, QWidget* parent);
    std::optional<FigureWish> figure() const override;

protected:
    void refresh() override;
    bool missing() override;
    figures::FigureOptions options() const override;
    bool can_join(const Study& study) const override;
    std::vector<FigureView::Mark> marks(const figures::FigureData& figure) const override;
    void clicked(int panel, int row, int column) override;
    QString words(const figures::FigureData& figure) const override;

private:
    void refresh_types();
    /// Whose types are shown: the selected head's, or of a layer without any the first that there are.
    std::optional<figures::TypedHead> shown_head() const;
    /// The analysis whose heads a panel shows.
    Study* study_of(int panel) const;
    QString describe(std::int64_t token) const;

    bool of_chunks() const;
    bool beside() const;  ///< each text of an analysis has a panel

    QComboBox* of_;
    QLabel* heading_;
    TypeStrip* strip_;
    TokenTextArea* text_;
    std::vector<std::int32_t> types_;  ///< of the shown text's tokens
};

}  // namespace headscope::widgets

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
    std::optional<FigureRequest> figure() const override;

protected:
    void refresh() override;
    figures::FigureOptions options() const override;
    bool can_join(const Study& study) const override;
    std::pair<std::int64_t, std::int64_t> marked() const override;

private:
    void refresh_types();
    /// Head whose types are shown: the selected one, or in a layer without types the first that has some.
    std::optional<figures::TypedHead> shown_head() const;
    QString describe(std::int64_t token) const;

    bool of_chunks() const;
    bool beside() const;  ///< each text of an analysis has a panel

    QLabel* heading_;
    TypeStrip* strip_;
    TokenTextArea* text_;
    std::vector<std::int32_t> types_;  ///< of the shown text's tokens
};

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "widgets/views/recipe_view.h"

namespace headscope::widgets {

/// Distributions of attention scores before the softmax and of weights after it: a ridge a layer or a head, with counts
/// of outliers.
class LogitsView : public RecipeView {
    Q_OBJECT
public:
    LogitsView(Desk* desk, QWidget* parent);

protected:
    void refresh() override;
    bool can_join(const Study& study) const override;
    QString words(const figures::FigureData& figure) const override;

private:
    bool after() const;  ///< weights are wanted, too
};

}  // namespace headscope::widgets

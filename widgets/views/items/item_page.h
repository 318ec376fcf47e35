// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QStringList>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/figures/figure_data.h"
#include "core/workspace/evaluation_items.h"
#include "widgets/text/shown_text.h"

namespace headscope::widgets {

/// One item as it is read: its contexts, each option with its tokens, or what was said and where the answers are in it.
/// Values only: any thread.
struct ItemPage {
    std::shared_ptr<const ShownText> text;
    /// One a token of `text`; contexts and headings are of none. Of options: minus its log-likelihood, NaN: unknown.
    /// Of said answers: 1 where an answer stands, 0 elsewhere in what was generated.
    std::vector<float> values;
    QStringList hints;  ///< one a token, for the pointer
    figures::ColourScale scale;
    bool scored = false;  ///< the scale means something
};

/// `classes`: names of the options, where they are a head's classes.
ItemPage make_item_page(const store::EvaluatedItem& item, const workspace::ItemTexts& texts,
                        std::span<const std::string> classes = {});

}  // namespace headscope::widgets

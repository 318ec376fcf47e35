// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QString>
#include <cstdint>
#include <vector>

#include "core/store/analysis/analysis_file.h"
#include "widgets/theme.h"

namespace headscope::widgets {

/// A colour an expert: the theme's own where these are enough, else hues that are far apart for neighbouring numbers.
QColor expert_colour(const Theme& theme, std::int64_t expert, std::int64_t experts);

/// A token's experts as the cells under it (TokenTextArea::set_strip), of `tokens` tokens: each in its expert's colour,
/// as strong as its weight is against the largest of them all; invalid where there is none.
std::vector<QColor> expert_cells(const store::AnalysisFile::Experts& found, std::int64_t tokens, std::int64_t experts,
                                 const Theme& theme);

/// "experts 3 (0.62), 0 (0.38)"; empty for a token that has none.
QString expert_words(const store::AnalysisFile::Experts& found, std::int64_t token);

/// The model has experts, whether or not the file says which took a token.
bool has_experts(const store::AnalysisHeader& header);

}  // namespace headscope::widgets

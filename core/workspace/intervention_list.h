// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The TOML of interventions (core/ask/edits/intervention_file.h) as rows of a table, and back. Knows no model: whether
// a model has what a row names is checked where the text is read for it. Errors: headscope::Error. Threads: any.

#include <string>
#include <string_view>
#include <vector>

namespace headscope::workspace {

/// An [[intervention]] table. Lists are as people type them, "3,5-7"; empty: all.
struct InterventionRow {
    std::string point = "head_output", layers, heads, positions, what = "zero";
    std::string more;  ///< its other keys: 'factor = 2, vector = "steer.gguf"'
    bool operator==(const InterventionRow&) const = default;
};

/// Rows of a text; none of an empty one. `where` names it in errors. Throws format for what is no TOML, usage for
/// tables of other names.
std::vector<InterventionRow> intervention_rows(std::string_view toml, const std::string& where);

/// The text with these rows; its [[text]] tables stay, comments do not. Empty without rows and texts. Throws usage,
/// naming the row from 1: "[intervention 2: heads] expected numbers like 3,5-7; found "x"".
std::string edited_interventions(std::string_view toml, const std::vector<InterventionRow>& rows,
                                 const std::string& where);

}  // namespace headscope::workspace

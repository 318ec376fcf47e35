// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Judges a paper's claims. A claim is a row of the paper's file: comparisons of measured numbers. What is no comparison
// is computed by the paper's own functions (claims/).

#include <filesystem>
#include <string>
#include <vector>

#include "core/reproduce/claim.h"
#include "core/reproduce/measured.h"

namespace headscope::reproduce {

using Rows = std::vector<std::vector<std::string>>;

/// Functions of a paper in claims/; null where it has none.
struct PaperCode {
    const char* paper;
    /// Adds an analysis of a subject; `text`: the name of what was read.
    void (*read_analysis)(const std::filesystem::path& file, const std::string& subject, const std::string& text,
                          Measured& measured);
    void (*read_run)(const std::filesystem::path& folder, const std::string& subject, Measured& measured);
    void (*derive)(const Plan& plan, Measured& measured);  ///< numbers that follow from others
    Rows (*rows)(const std::string& table, const Plan& plan, const Measured& measured);  ///< of a table by its name
};
PaperCode paper_code(const Paper& paper);

/// True if models saw enough tokens to use their context, by the paper's [learned]; else its claims are undecided.
bool learned(const Plan& plan, const Measured& measured);
/// `measured` without derived numbers.
std::vector<Claim> judge(const Plan& plan, Measured measured);

}  // namespace headscope::reproduce

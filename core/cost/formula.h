// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A cost as the papers print it: one text that is shown and computed, so that the two cannot differ.

#include <map>
#include <string>

namespace headscope::cost {

/// Values of the letters of a formula: {'B', 4}, {'L', 2048}, ...
using Letters = std::map<char, double>;

/// "(8 B L d + 2 B L^2 h) / t": sums and differences of products; factors are numbers, single letters and brackets,
/// with whole exponents, and stand side by side; `/` divides by the one factor that follows it.
class Formula {
public:
    Formula() : Formula("0") {}
    /// An empty text: there is none, its value is NaN. Throws Error internal for a text that is no formula: these texts
    /// are our own.
    Formula(const char* text);
    Formula(std::string text);

    /// Throws Error internal when a letter has no value.
    double operator()(const Letters& letters) const;
    const std::string& text() const noexcept { return text_; }
    std::string pretty() const;  ///< with raised exponents: "4 B L² d"

private:
    std::string text_;
};

}  // namespace headscope::cost

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Numbers that a replay measured, by subject ("lazy", "approximate hybrid") and name ("loss", "perplexity@4"), and the
// expressions and texts of claims and tables.

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/reproduce/claim.h"
#include "core/reproduce/plan.h"

namespace headscope::reproduce {

struct Series {
    std::vector<double> values;                               ///< of each seed
    double error = std::numeric_limits<double>::quiet_NaN();  ///< the largest standard error of one; NaN: not known
};

using Matrix = std::vector<std::vector<double>>;

struct Measured {
    std::map<std::pair<std::string, std::string>, Series> values;
    std::map<std::pair<std::string, std::string>, std::vector<Matrix>> matrices;  ///< of each seed, or each text

    void set(const std::string& subject, const std::string& name, double value,
             double error = std::numeric_limits<double>::quiet_NaN());
    void add(const std::string& subject, const std::string& name, double value, double error);
    bool has(const std::string& subject) const;
    /// The means over lengths where `name` has only values of lengths. Empty where nothing was measured.
    Series series(const std::string& subject, const std::string& name) const;
    Spread spread(const std::string& subject, const std::string& name) const {
        return spread_of(series(subject, name).values);
    }
    /// Mean over seeds; NaN: not measured.
    double value(const std::string& subject, const std::string& name) const { return spread(subject, name).mean; }
    /// Its error is the larger of what seeds and items give, NaN where neither does.
    Estimate estimate(const std::string& subject, const std::string& name) const;
    const Matrix* matrix(const std::string& subject, const std::string& name) const;  ///< the first; null: none
};

/// Evaluates expressions: "loss", "loss:softmax" (of that subject), "a / b:standard". "*" in a subject stands
/// for the model of the current one. "paper.KEY" and "paper.KEY.INDEX" are printed numbers.
struct Scope {
    const Plan& plan;
    const Measured& measured;
    std::string subject;
    std::map<std::string, std::string> words{};  ///< of texts, besides the plan's

    Spread spread(const std::string& expression) const;
    /// A quotient has the error over seeds alone.
    Estimate estimate(const std::string& expression) const;
    /// With the error over seeds alone: items are the same for all models. `deviation`: of one that has one seed.
    Estimate over_seeds(const std::string& expression, double deviation) const;
    std::vector<double> values(const std::string& expression) const;  ///< of each seed
    double value(const std::string& expression) const { return spread(expression).mean; }
    /// Fills {label}, words of the plan, and {EXPRESSION} or {EXPRESSION|FORMAT}. Formats: % share, 100 per cent
    /// without the sign, 100- of what is left of 1, ± with the deviation over seeds, 100±, ±e with the standard error,
    /// 100±e, +% above 1, 0% whole per cent, n whole, M millions, MK millions printed as such, printed, list.
    /// `complete`: whether all numbers are finite.
    std::string text(const std::string& pattern, bool* complete = nullptr) const;

    /// Cuts ":SUBJECT" off a name.
    std::string subject_of(std::string& name) const;

private:
    std::string number(const std::string& expression, const std::string& format, bool* complete) const;
};

}  // namespace headscope::reproduce

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A claim of a paper and whether it held here, by a criterion that was fixed before anything ran; and texts of numbers.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace headscope::reproduce {

enum class Verdict {
    held,
    partly,
    failed,
    undecided,  ///< the models learned too little
    too_near,   ///< the numbers differ by no more than chance makes them differ
    not_measured
};
std::string verdict_text(Verdict verdict);

/// A number with what chance makes of it: over seeds, or over what one model was asked.
struct Estimate {
    double value = std::numeric_limits<double>::quiet_NaN();
    double error = 0;        ///< standard error; NaN: not known
    std::int64_t count = 1;  ///< seeds
};

/// One number against another.
struct ClaimPart {
    std::string what;      ///< "perplexity of MLP hybrid"
    std::string relation;  ///< "at most 1.05 times that of Standard"
    Estimate own, limit;
    /// Twice the standard error of their difference; NaN: made from both errors.
    double noise = std::numeric_limits<double>::quiet_NaN();
    Verdict verdict = Verdict::not_measured;  ///< held, failed or too_near
};

struct Claim {
    std::string title;      ///< the claim
    std::string paper;      ///< the paper's numbers
    std::string criterion;  ///< when we say that it held
    std::string found;      ///< our numbers
    Verdict verdict = Verdict::not_measured;
    std::string longer{};  ///< of an open claim: what a longer run would add; empty: not known
    std::vector<ClaimPart> parts{};
};

/// How a number has to lie to its limit.
struct Relation {
    bool above = true, equal = false;  ///< else below; whether equal numbers hold
};

/// Parts of a claim: it held when all did, in part when some did; none: not measured.
class ClaimParts {
public:
    void add(bool held, ClaimPart part = {});
    /// Open where the numbers differ by no more than twice the standard error of their difference; no part where either
    /// is no number. An error that is not known leaves the part open if `noise`, and counts as none else.
    void add(const Relation& relation, ClaimPart part, bool noise);
    Verdict verdict() const;  ///< too_near: all are open
    /// The same for a claim that is never held in part: failed where a part is, else open where one is.
    Verdict whole_verdict() const;
    const std::vector<ClaimPart>& parts() const { return parts_; }
    /// How many times as many seeds decide every open part if the differences stay as they are: standard errors fall
    /// with the square root of the seeds. Infinite for equal numbers, NaN where an error is not known; 1 without open
    /// parts.
    double times_seeds() const { return times_; }

private:
    int count(Verdict verdict) const;

    std::vector<ClaimPart> parts_;
    double times_ = 1;
};

/// Appends `text`, after "; " where `found` is not empty.
void append_found(std::string& found, const std::string& text);

/// The report's section: how many held, a table, and each claim with paper, criterion and what was found. `remark` (may
/// be empty) stands before the table.
std::string claims_markdown(const std::vector<Claim>& claims, const std::string& remark);

/// Over seeds: mean, and the standard deviation (divisor n - 1; NaN for one).
struct Spread {
    double mean = std::numeric_limits<double>::quiet_NaN();
    double deviation = std::numeric_limits<double>::quiet_NaN();
    std::int64_t count = 0;
};
Spread spread_of(const std::vector<double>& values);

/// "12.3", "12.3 ± 0.4": three or four significant digits.
std::string number_text(double value);
std::string numbers_text(const std::vector<double>& values, const std::string& between);  ///< number_text() of each
/// "12.3 %"; a dash for what is no number.
std::string share_text(double share);
std::string spread_text(const Spread& spread);
/// "12.3 M".
std::string millions_text(double count);
/// "3 min 20 s".
std::string seconds_text(double seconds);

/// A table's row, and its first two.
std::string row_markdown(const std::vector<std::string>& cells);
std::string table_head_markdown(const std::vector<std::string>& cells);

/// A figure of the report: figures/NAME.pdf, .png and .csv.
struct ReportFigure {
    std::string name;     ///< "radar-uniform"
    std::string caption;  ///< what it shows and which of the paper's figures it stands for
};
std::string figures_markdown(const std::vector<ReportFigure>& figures);

}  // namespace headscope::reproduce

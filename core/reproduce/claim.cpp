// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/claim.h"

#include <algorithm>
#include <cmath>

#include "core/base/text/text.h"

namespace headscope::reproduce {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::string seeds_of(const Estimate& estimate) {
    return number_text(estimate.value) + (estimate.count > 1 ? " (" + std::to_string(estimate.count) + " seeds)" : "");
}

/// Its number, the limit, and their difference with its noise.
std::string parts_markdown(const std::vector<ClaimPart>& parts) {
    if (parts.empty() || parts.front().what.empty()) return "";
    std::string text = "\n" + table_head_markdown({"compared", "here", "expected", "limit", "difference", "verdict"});
    for (const ClaimPart& part : parts) {
        const std::string noise = part.noise > 0 ? " ± " + number_text(part.noise) : "";
        text += row_markdown({part.what, seeds_of(part.own), part.relation, seeds_of(part.limit),
                              number_text(part.own.value - part.limit.value) + noise,
                              std::isnan(part.noise) && part.verdict == Verdict::too_near
                                  ? "undecided: the noise is not known"
                                  : verdict_text(part.verdict)});
    }
    return text + "\n";
}

}  // namespace

void ClaimParts::add(bool held, ClaimPart part) {
    part.verdict = held ? Verdict::held : Verdict::failed;
    parts_.push_back(std::move(part));
}

void ClaimParts::add(const Relation& relation, ClaimPart part, bool noise) {
    const double more = part.own.value - part.limit.value, difference = relation.above ? more : -more;
    if (!std::isfinite(difference)) return;
    if (std::isnan(part.noise)) part.noise = 2 * std::hypot(part.own.error, part.limit.error);
    const double wide = noise || std::isfinite(part.noise) ? part.noise : 0;
    if (wide == 0) return add(difference > 0 || (relation.equal && difference == 0), std::move(part));
    part.verdict = difference > wide ? Verdict::held : difference < -wide ? Verdict::failed : Verdict::too_near;
    if (part.verdict == Verdict::too_near) {
        const double share = difference == 0 && std::isfinite(wide) ? kNever : wide / std::abs(difference);
        times_ = std::isnan(share) || std::isnan(times_) ? std::nan("") : std::max(times_, share * share);
    }
    parts_.push_back(std::move(part));
}

int ClaimParts::count(Verdict verdict) const {
    return static_cast<int>(
        std::count_if(parts_.begin(), parts_.end(), [&](const ClaimPart& part) { return part.verdict == verdict; }));
}

Verdict ClaimParts::verdict() const {
    const int held = count(Verdict::held), failed = count(Verdict::failed), open = count(Verdict::too_near);
    if (parts_.empty()) return Verdict::not_measured;
    if (failed + open == 0) return Verdict::held;
    if (held == 0) return failed == 0 ? Verdict::too_near : Verdict::failed;
    return Verdict::partly;
}

Verdict ClaimParts::whole_verdict() const {
    if (count(Verdict::failed) > 0) return Verdict::failed;
    return count(Verdict::too_near) > 0 ? Verdict::too_near : verdict();
}

void append_found(std::string& found, const std::string& text) {
    found += (found.empty() ? "" : "; ") + text;
}

std::string verdict_text(Verdict verdict) {
    static constexpr const char* texts[] = {"held",
                                            "held in part",
                                            "did not hold",
                                            "undecided: too little was learned",
                                            "undecided: within the noise",
                                            "not measured"};
    return texts[static_cast<std::size_t>(verdict)];
}

std::string number_text(double value) {
    if (!std::isfinite(value)) return "–";
    const double size = std::abs(value);
    return printf_text(size >= 1e5    ? "%.1E"
                       : size >= 1000 ? "%.0f"
                       : size >= 100  ? "%.1f"
                       : size >= 10   ? "%.2f"
                                      : "%.3f",
                       value);
}

std::string numbers_text(const std::vector<double>& values, const std::string& between) {
    std::vector<std::string> texts;
    for (const double value : values) texts.push_back(number_text(value));
    return joined_text(texts, between);
}

std::string share_text(double share) {
    return std::isfinite(share) ? number_text(100 * share) + " %" : "–";
}

std::string spread_text(const Spread& spread) {
    if (spread.count == 0) return "–";
    const std::string mean = number_text(spread.mean);
    if (!std::isfinite(spread.deviation)) return mean;
    if (mean.find('E') != std::string::npos) return mean + " ± " + number_text(spread.deviation);
    const std::size_t point = mean.find('.');  // the deviation has as many places as the mean
    const std::size_t places = point == std::string::npos ? 0 : mean.size() - point - 1;
    return mean + " ± " + printf_text(("%." + std::to_string(places) + "f").c_str(), spread.deviation);
}

std::string millions_text(double count) {
    return number_text(count / 1e6) + " M";
}

std::string row_markdown(const std::vector<std::string>& cells) {
    std::string text = "|";
    for (const std::string& cell : cells) text += (cell.empty() ? "" : " ") + cell + " |";
    return text + "\n";
}

std::string table_head_markdown(const std::vector<std::string>& cells) {
    return row_markdown(cells) + row_markdown(std::vector<std::string>(cells.size(), "---"));
}

Spread spread_of(const std::vector<double>& values) {
    Spread spread;
    spread.count = static_cast<std::int64_t>(values.size());
    if (values.empty()) return spread;
    double sum = 0, squares = 0;
    for (const double value : values) sum += value;
    spread.mean = sum / static_cast<double>(values.size());
    for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
    if (values.size() > 1) spread.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
    return spread;
}

std::string seconds_text(double seconds) {
    const auto whole = static_cast<std::int64_t>(std::lround(seconds));
    return (whole < 60 ? "" : std::to_string(whole / 60) + " min ") + std::to_string(whole % 60) + " s";
}

std::string claims_markdown(const std::vector<Claim>& claims, const std::string& remark) {
    const auto count = [&](Verdict verdict) {
        return std::count_if(claims.begin(), claims.end(),
                             [&](const Claim& claim) { return claim.verdict == verdict; });
    };
    const auto open = count(Verdict::undecided) + count(Verdict::too_near) + count(Verdict::not_measured);
    std::string text = "## Which of its claims held here\n\n";
    text += std::to_string(count(Verdict::held)) + " of " + std::to_string(claims.size()) + " held, " +
            std::to_string(count(Verdict::partly)) + " in part, " + std::to_string(count(Verdict::failed)) +
            " did not" + (open > 0 ? ", " + std::to_string(open) + (open == 1 ? " is open" : " are open") : "") +
            ". The criteria were fixed in the program before anything was trained.\n\n";
    text += "In the tables, x@n is x at n times the training length. ± is twice the standard error of the difference; ";
    text +=
        "runs of one seed are paired. Where nothing differs, chance exceeds it in 3 of 10 comparisons of two seeds ";
    text += "and in 2 of 10 of three. A difference without ± is of one seed, whose noise is not known, or of numbers ";
    text += "that do not vary.\n\n";
    if (!remark.empty()) text += remark + "\n\n";
    text += table_head_markdown({"claim", "verdict"});
    for (const Claim& claim : claims) text += row_markdown({claim.title, "**" + verdict_text(claim.verdict) + "**"});
    text += "\n";
    for (const Claim& claim : claims) {
        text += "**" + claim.title + ": " + verdict_text(claim.verdict) + ".**\n- Paper: " + claim.paper +
                ".\n- Criterion: " + claim.criterion +
                ".\n- Here: " + (claim.found.empty() ? "nothing was measured" : claim.found) + ".\n";
        text += parts_markdown(claim.parts);
        if (!claim.longer.empty()) text += "- A longer run: " + claim.longer + ".\n";
        text += "\n";
    }
    return text;
}

std::string figures_markdown(const std::vector<ReportFigure>& figures) {
    if (figures.empty()) return "";
    std::string text = "## Figures\n\n";
    for (const ReportFigure& figure : figures) {
        text += "![" + figure.caption + "](figures/" + figure.name + ".png)\n\n" + figure.caption + " ([PDF](figures/" +
                figure.name + ".pdf), [numbers](figures/" + figure.name + ".csv))\n\n";
    }
    return text;
}

}  // namespace headscope::reproduce

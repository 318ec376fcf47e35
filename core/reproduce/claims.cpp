// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/claims.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/reproduce/claims/code.h"

namespace headscope::reproduce {
namespace {

constexpr const char* kRelations[] = {"below", "above", "at_most", "at_least", "between"};

/// The parts of one row of `holds`: metric of each subject against a number or an expression.
class Comparison {
public:
    Comparison(const Plan& plan, const Measured& measured, JsonView view, bool noise)
        : plan_(plan), in_(measured), view_(std::move(view)), noise_(noise) {}

    void add_to(ClaimParts& parts) const {
        const Paper& paper = *plan_.paper;
        for (const std::string& subject : paper.names(view_, "of")) {
            const std::vector<std::string> others =
                view_.has("than") ? paper.names(view_, "than") : std::vector<std::string>{subject};
            for (const std::string& other : others)
                if (other != subject || !view_.has("than")) add(parts, {plan_, in_, subject}, {plan_, in_, other});
        }
    }

private:
    JsonView bound() const {
        for (const char* relation : kRelations)
            if (view_.has(relation)) return view_.at(relation);
        view_.refuse(ErrorCode::format, "expected below, above, at_most, at_least or between");
    }

    void add(ClaimParts& parts, const Scope& own, const Scope& other) const {
        if (noise_) {
            const Estimate one = own.estimate(view_.at("metric").string()), two = other.estimate(bound().string());
            return view_.has("above") ? parts.add_above(one, two) : parts.add_above(two, one);
        }
        const double value = own.value(view_.at("metric").string());
        if (!std::isfinite(value)) return;
        if (view_.has("between")) {
            const std::vector<double> range = bound().numbers();
            return parts.add(value >= range.at(0) && value <= range.at(1));
        }
        const double limit =
            view_.number_or("plus", 0) +
            view_.number_or("factor", 1) * (bound().is_string() ? other.value(bound().string()) : bound().number());
        if (!std::isfinite(limit)) return;
        parts.add(view_.has("below")     ? value < limit
                  : view_.has("above")   ? value > limit
                  : view_.has("at_most") ? value <= limit
                                         : value >= limit);
    }

    const Plan& plan_;
    const Measured& in_;
    JsonView view_;
    bool noise_;  ///< compares by standard errors
};

ClaimParts parts_of(const Plan& plan, const Measured& measured, const JsonView& rows, bool noise = false) {
    ClaimParts parts;
    for (std::size_t i = 0; i < rows.size(); ++i) Comparison(plan, measured, rows.at(i), noise).add_to(parts);
    return parts;
}

Verdict verdict_of(const Plan& plan, const Measured& measured, const JsonView& rows) {
    return parts_of(plan, measured, rows).verdict();
}

std::string whole_text(double count) {
    return std::to_string(std::llround(count));
}

constexpr double kMostSeeds = 1000;  // more would be another experiment

/// "--minutes 80", of as many minutes a seed, or a token, as this replay took.
std::string minutes_option(const Plan& plan, double times) {
    return "--minutes " + whole_text(std::ceil(plan.minutes * times));
}

/// An open claim within the noise: how many seeds would decide it.
std::string more_seeds(const Plan& plan, const ClaimParts& parts) {
    const auto seeds = static_cast<double>(plan.seeds);
    const double needed = std::max(seeds + 1, std::ceil(seeds * parts.times_seeds()));
    if (std::isnan(parts.times_seeds()))
        return plan.seeds > 1
                   ? ""
                   : "the noise of one seed is not known; two would show it, about " + minutes_option(plan, 2);
    if (needed > kMostSeeds)
        return "if the difference stays as it is, more than " + whole_text(kMostSeeds) +
               " seeds would be needed: the numbers are as good as equal";
    return "if the difference stays as it is, " + whole_text(needed) + " seeds instead of " +
           std::to_string(plan.seeds) + ", of " + millions_text(static_cast<double>(plan.tokens())) +
           " tokens a run, would decide it, since noise falls with their square root: about " +
           minutes_option(plan, needed / seeds) + (plan.paper->has_seeds() ? " --seeds " + whole_text(needed) : "");
}

/// An open claim of models that learned too little: how many tokens decide one.
std::string more_tokens(const Plan& plan) {
    const auto tokens = static_cast<double>(plan.tokens());
    const double needed = plan.paper->judge_tokens;
    if (tokens <= 0) return "";
    if (tokens < needed)
        return millions_text(needed) + " tokens a run instead of " + millions_text(tokens) +
               " are what claims need: about " + minutes_option(plan, needed / tokens);
    return millions_text(tokens) + " tokens a run taught too little; the next to try is twice as many, " +
           minutes_option(plan, 2);
}

/// A claim without numbers: the fewest minutes that train every model which it compares; empty where these do.
std::string more_models(const Plan& plan, const JsonView& rows) {
    double minutes = 0;
    for (std::size_t i = 0; i < rows.size(); ++i)
        for (const char* key : {"of", "than"}) {
            if (!rows.at(i).has(key)) continue;
            const std::vector<std::string> names = plan.paper->names(rows.at(i), key);
            for (const Model& model : plan.paper->models)
                if (std::find(names.begin(), names.end(), model.name) != names.end())
                    minutes = std::max(minutes, model.from_minutes);
        }
    return minutes > plan.minutes ? "models that it compares are trained from --minutes " + whole_text(minutes) + " on"
                                  : "";
}

/// Texts of the subjects whose numbers were all measured.
std::string found_text(const Plan& plan, const Measured& measured, const JsonView& rows) {
    std::string found;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const JsonView row = rows.at(i);
        std::string text;
        for (const std::string& subject : plan.paper->names(row, "of")) {
            bool complete = true;
            const std::string one = Scope{plan, measured, subject}.text(row.at("text").string(), &complete);
            if (complete) text += (text.empty() ? "" : row.string_or("join", "; ")) + one;
        }
        if (!text.empty()) append_found(found, row.string_or("before", "") + text);
    }
    return found;
}

}  // namespace

PaperCode paper_code(const Paper& paper) {
    for (const PaperCode* code : kPaperCode)
        if (paper.name.starts_with(code->paper)) return *code;
    return {};
}

bool learned(const Plan& plan, const Measured& measured) {
    const JsonView view = plan.paper->view();
    if (!view.has("learned")) return static_cast<double>(plan.tokens()) >= plan.paper->judge_tokens;
    const std::string subject = view.at("learned").at(std::size_t{0}).at("of").string();
    return measured.has(subject) && verdict_of(plan, measured, view.at("learned")) != Verdict::failed;
}

std::vector<Claim> judge(const Plan& plan, Measured measured) {
    if (const auto derive = paper_code(*plan.paper).derive) derive(plan, measured);
    const bool enough = learned(plan, measured);
    std::vector<Claim> claims;
    const JsonView rows = plan.paper->view().at("claim");
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const JsonView row = rows.at(i);
        Claim claim{row.at("title").string(), row.at("paper").string(), row.at("criterion").string(), "",
                    Verdict::not_measured};
        const ClaimParts parts = parts_of(plan, measured, row.at("holds"), row.boolean_or("noise", false));
        claim.verdict = parts.verdict();
        if (row.boolean_or("whole", false) && claim.verdict == Verdict::partly) claim.verdict = Verdict::failed;
        claim.found = found_text(plan, measured, row.at("found"));
        const bool open = (!enough && !row.boolean_or("untrained", false)) ||
                          (row.has("needs") && verdict_of(plan, measured, row.at("needs")) == Verdict::failed);
        if (open && claim.verdict != Verdict::not_measured) claim.verdict = Verdict::undecided;
        if (claim.verdict == Verdict::too_near)
            claim.longer = more_seeds(plan, parts);
        else if (claim.verdict == Verdict::undecided)
            claim.longer = more_tokens(plan);
        else if (claim.verdict == Verdict::not_measured)
            claim.longer = more_models(plan, row.at("holds"));
        claims.push_back(std::move(claim));
    }
    return claims;
}

}  // namespace headscope::reproduce

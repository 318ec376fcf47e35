// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/claims.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/reproduce/claims/code.h"

namespace headscope::reproduce {
namespace {

struct Bound {
    const char* key;
    const char* words;
    Relation relation;
};
constexpr Bound kBounds[] = {{"below", "below", {false, false}},
                             {"above", "above", {true, false}},
                             {"at_most", "at most", {false, true}},
                             {"at_least", "at least", {true, true}}};

/// "Approximate hybrid".
std::string subject_text(const Plan& plan, const std::string& subject) {
    const std::size_t space = subject.find(' ');
    return plan.paper->label(subject) + (space == std::string::npos ? "" : subject.substr(space));
}

/// The parts of one row of `holds`: metric of each subject against a number or an expression.
class Comparison {
public:
    Comparison(const Plan& plan, const Measured& measured, JsonView view, bool noise)
        : plan_(plan), in_(measured), view_(std::move(view)), noise_(noise) {}

    void add_to(ClaimParts& parts) const {
        const bool itself = !view_.has("than");  // the limit is one of the same subject
        for (const std::string& subject : plan_.paper->names(view_, "of"))
            for (const std::string& other : plan_.paper->names(view_, itself ? "of" : "than"))
                if ((other == subject) == itself) add(parts, {plan_, in_, subject}, {plan_, in_, other});
    }

private:
    void add(ClaimParts& parts, const Scope& own, const Scope& other) const {
        const std::string metric = view_.at("metric").string();
        ClaimPart part{metric + " of " + subject_text(plan_, own.subject), "", own.estimate(metric), {}};
        if (const auto range = view_.find("between")) {
            const std::vector<double> ends = range->numbers();
            part.relation = "between " + number_text(ends.at(0)) + " and " + number_text(ends.at(1));
            part.limit.value = ends.at(part.own.value > ends.at(1) ? 1 : 0);
            if (std::isfinite(part.own.value))
                parts.add(part.own.value >= ends.at(0) && part.own.value <= ends.at(1), std::move(part));
            return;
        }
        for (const Bound& one : kBounds) {
            const auto bound = view_.find(one.key);
            if (!bound) continue;
            part.relation = one.words;
            const std::string limit = bound->is_string() ? bound->string() : "";
            const double factor = view_.number_or("factor", 1);
            if (!noise_) part.own = own.over_seeds(metric, other.spread(limit).deviation);
            if (limit.empty()) {
                part.limit.value = bound->number();
            } else {
                part.limit = noise_ ? other.estimate(limit) : other.over_seeds(limit, own.spread(metric).deviation);
                part.relation += limit_text(limit, metric, other);
                part.noise = paired_noise(own.values(metric), other.values(limit), factor);
            }
            part.limit.value = view_.number_or("plus", 0) + factor * part.limit.value;
            part.limit.error *= factor;
            parts.add(one.relation, std::move(part), noise_);
            return;
        }
        view_.refuse(ErrorCode::format, "expected below, above, at_most, at_least or between");
    }

    /// Runs of one seed read the same tokens in the same order, and all are asked the same items. NaN where fewer than
    /// two seeds have both numbers.
    static double paired_noise(const std::vector<double>& own, const std::vector<double>& limit, double factor) {
        std::vector<double> differences;
        for (std::size_t seed = 0; seed < std::min(own.size(), limit.size()); ++seed)
            differences.push_back(own[seed] - factor * limit[seed]);
        const Spread over = spread_of(differences);
        return 2 * over.deviation / std::sqrt(static_cast<double>(over.count));
    }

    /// " 1.05 times that of Standard", " sink of Softmax - 0.02".
    std::string limit_text(std::string limit, const std::string& metric, const Scope& other) const {
        const std::string subject = limit.find(" / ") == std::string::npos ? other.subject_of(limit) : other.subject;
        std::string text;
        if (view_.has("factor")) text += " " + printf_text("%.4g", view_.number_or("factor", 1)) + " times";
        text += (limit == metric ? " that" : " " + limit) + " of " + subject_text(plan_, subject);
        if (view_.has("plus")) text += printf_text(" %+.3g", view_.number_or("plus", 0));
        return text;
    }

    const Plan& plan_;
    const Measured& in_;
    JsonView view_;
    bool noise_;  ///< compares by standard errors
};

ClaimParts parts_of(const Plan& plan, const Measured& measured, const JsonView& rows, bool noise = false) {
    ClaimParts parts;
    for (const JsonView& row : rows.items()) Comparison(plan, measured, row, noise).add_to(parts);
    return parts;
}

Verdict verdict_of(const Plan& plan, const Measured& measured, const JsonView& rows) {
    return parts_of(plan, measured, rows).verdict();
}

std::string whole_text(double count) {
    return std::to_string(std::llround(count));
}

constexpr double kMostSeeds = 1000;  // more would be another experiment

/// "--minutes 80", of as many minutes a seed, or a token, as this plan gave.
std::string minutes_option(const Plan& plan, double times) {
    return "--minutes " + whole_text(std::ceil(plan.steps_minutes * times));
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
           minutes_option(plan, needed / seeds) + " --seeds " + whole_text(needed);
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
    for (const JsonView& row : rows.items()) {
        std::vector<std::string> texts;
        for (const std::string& subject : plan.paper->names(row, "of")) {
            bool complete = true;
            std::string one = Scope{plan, measured, subject}.text(row.at("text").string(), &complete);
            if (complete) texts.push_back(std::move(one));
        }
        if (!texts.empty())
            append_found(found, row.string_or("before", "") + joined_text(texts, row.string_or("join", "; ")));
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
    for (const JsonView& row : plan.paper->rows("claim")) {
        Claim claim{row.at("title").string(), row.at("paper").string(), row.at("criterion").string(), "",
                    Verdict::not_measured};
        const ClaimParts parts = parts_of(plan, measured, row.at("holds"), row.boolean_or("noise", false));
        claim.verdict = row.boolean_or("whole", false) ? parts.whole_verdict() : parts.verdict();
        claim.parts = parts.parts();
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

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/measured.h"

#include <algorithm>
#include <cmath>

#include "core/base/text/text.h"

namespace headscope::reproduce {
namespace {

using nlohmann::json;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// "paper.glue.0" of a subject: null where nothing is printed.
const json* printed(const Paper& paper, const std::string& subject, std::string name) {
    std::replace(name.begin(), name.end(), '.', '/');
    const json::json_pointer place("/printed/" + subject + name.substr(name.find('/')));
    return paper.document.contains(place) ? &paper.document.at(place) : nullptr;
}

Spread scaled(Spread spread, double factor) {
    return {factor * spread.mean, factor * spread.deviation, spread.count};
}

}  // namespace

void Measured::set(const std::string& subject, const std::string& name, double value, double error) {
    values[{subject, name}] = {{value}, error};
}

void Measured::add(const std::string& subject, const std::string& name, double value, double error) {
    Series& own = values[{subject, name}];
    own.values.push_back(value);
    own.error = std::fmax(own.error, error);
}

bool Measured::has(const std::string& subject) const {
    const auto found = values.lower_bound({subject, ""});
    return found != values.end() && found->first.first == subject;
}

Series Measured::series(const std::string& subject, const std::string& name) const {
    if (const auto found = values.find({subject, name}); found != values.end()) return found->second;
    std::vector<std::vector<double>> seeds;
    for (auto one = values.lower_bound({subject, name + "@"}); one != values.end(); ++one) {
        if (one->first.first != subject || !one->first.second.starts_with(name + "@")) break;
        seeds.resize(std::max(seeds.size(), one->second.values.size()));
        for (std::size_t seed = 0; seed < one->second.values.size(); ++seed)
            seeds[seed].push_back(one->second.values[seed]);
    }
    Series means;
    for (const std::vector<double>& lengths : seeds) means.values.push_back(spread_of(lengths).mean);
    return means;
}

Estimate Measured::estimate(const std::string& subject, const std::string& name) const {
    const Series own = series(subject, name);
    const Spread over = spread_of(own.values);
    return {over.mean, std::fmax(over.deviation, own.error) / std::sqrt(static_cast<double>(over.count)), over.count};
}

const Matrix* Measured::matrix(const std::string& subject, const std::string& name) const {
    const auto found = matrices.find({subject, name});
    return found == matrices.end() || found->second.empty() ? nullptr : &found->second.front();
}

std::string Scope::subject_of(std::string& name) const {
    const std::size_t colon = name.find(':');
    if (colon == std::string::npos) return subject;
    std::string other = name.substr(colon + 1);
    name.erase(colon);
    if (const std::size_t star = other.find('*'); star != std::string::npos)
        other.replace(star, 1, subject.substr(0, subject.find(' ')));
    return other;
}

std::vector<double> Scope::values(const std::string& expression) const {
    if (const std::size_t over = expression.find(" / "); over != std::string::npos) {
        std::vector<double> own = values(expression.substr(0, over));
        const std::vector<double> other = values(expression.substr(over + 3));
        if (own.size() != other.size()) return {spread_of(own).mean / spread_of(other).mean};
        for (std::size_t seed = 0; seed < own.size(); ++seed) own[seed] /= other[seed];
        return own;
    }
    std::string name = expression;
    const std::string of = subject_of(name);
    if (!name.starts_with("paper.")) return measured.series(of, name).values;
    const json* number = printed(*plan.paper, of, name);
    return number != nullptr && number->is_number() ? std::vector{number->get<double>()} : std::vector<double>();
}

Spread Scope::spread(const std::string& expression) const {
    return spread_of(values(expression));
}

Estimate Scope::estimate(const std::string& expression) const {
    if (expression.find(" / ") != std::string::npos || expression.starts_with("paper."))
        return over_seeds(expression, kNaN);
    std::string name = expression;
    const std::string of = subject_of(name);
    return measured.estimate(of, name);
}

Estimate Scope::over_seeds(const std::string& expression, double deviation) const {
    const Spread own = spread(expression);
    return {own.mean, (own.count > 1 ? own.deviation : deviation) / std::sqrt(static_cast<double>(own.count)),
            own.count};
}

std::string Scope::number(const std::string& expression, const std::string& format, bool* complete) const {
    if (format == "list") {
        const Matrix* matrix = measured.matrix(subject, expression);
        if (matrix == nullptr || matrix->front().size() < 2) {
            if (complete != nullptr) *complete = false;
            return "–";
        }
        return numbers_text(matrix->front(), "; ");
    }
    if (expression.starts_with("paper."))
        if (const json* own = printed(*plan.paper, subject, expression); own != nullptr && own->is_string())
            return own->get<std::string>();
    const Spread own = spread(expression);
    const double value = own.mean;
    if (!std::isfinite(value) && complete != nullptr) *complete = false;
    if (format == "±") return spread_text(own);
    if (format == "100±") return spread_text(scaled(own, 100));
    if (!std::isfinite(value)) return "–";
    if (format.ends_with("±e")) {
        const double unit = format == "±e" ? 1 : 100, error = estimate(expression).error;
        return number_text(unit * value) + (error > 0 ? " ± " + number_text(unit * error) : "");
    }
    if (format == "%") return share_text(value);
    if (format == "100") return number_text(100 * value);
    if (format == "100-") return number_text(100 * (1 - value));
    if (format == "+%") return printf_text("%+.1f %%", 100 * (value - 1));
    if (format == "0%") return printf_text("%.0f %%", 100 * value);
    if (format == "n") return std::to_string(std::llround(value));
    if (format == "M") return millions_text(value);
    if (format == "MK") return value < 1 ? number_text(1000 * value) + " K" : number_text(value) + " M";
    if (format == "printed") return printf_text(value >= 2e4 ? "%.0E" : "%.1f", value);
    return number_text(value);
}

std::string Scope::text(const std::string& pattern, bool* complete) const {
    return filled(pattern, [&](const std::string& word) -> std::optional<std::string> {
        if (word == "label") return plan.paper->label(subject);
        if (word == "subject") return subject;
        if (const auto own = words.find(word); own != words.end()) return own->second;
        if (auto own = plan.word(word)) return own;
        const std::size_t bar = word.find('|');
        return number(word.substr(0, bar), bar == std::string::npos ? "" : word.substr(bar + 1), complete);
    });
}

}  // namespace headscope::reproduce

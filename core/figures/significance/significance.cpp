// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/significance/significance.h"

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/figures/significance/t_test.h"

namespace headscope::figures {
namespace {

constexpr double kNoTest = std::numeric_limits<double>::quiet_NaN();

struct ItemSum {
    double score = 0, seeds = 0;
    std::int64_t gold = -1;
};

/// An item's value of the metric; items of older files hold only if the answer is right. NaN: none.
double item_score(const store::EvaluatedItem& item, const std::string& metric) {
    const nlohmann::json values = nlohmann::json::parse(item.metrics, nullptr, false);
    if (values.is_object()) {
        if (const auto found = values.find(metric); found != values.end() && found->is_number())
            return found->get<double>();
    }
    if (metric != "acc" && metric != "accuracy" && metric != "contains") return kNoTest;
    return item.right ? 1 : 0;
}

/// Each item's sum over a model's seeds; empty if one has no value.
std::map<std::int64_t, ItemSum> item_scores(const TestedModel& tested, const std::string& metric, std::int64_t shots) {
    std::map<std::int64_t, ItemSum> scores;
    for (const EvaluationMember& member : tested.members) {
        for (const store::EvaluatedItem& item : member.evaluation->items) {
            if (item.model != member.model || item.task != tested.task || item.length != tested.length ||
                item.shots != shots || (!tested.subset.empty() && item.subset != tested.subset))
                continue;
            const double score = item_score(item, metric);
            if (std::isnan(score)) return {};
            ItemSum& sum = scores[item.item];
            sum.score += score;
            sum.seeds += 1;
            sum.gold = item.gold;
        }
    }
    return scores;
}

double paired_p(const TestedModel& a, const TestedModel& b, const std::string& metric, std::int64_t shots) {
    const auto ours = item_scores(a, metric, shots), others = item_scores(b, metric, shots);
    if (ours.size() != others.size()) return kNoTest;
    std::vector<double> one, other;
    for (auto x = ours.begin(), y = others.begin(); x != ours.end(); ++x, ++y) {
        if (x->first != y->first || x->second.gold != y->second.gold) return kNoTest;  // not the same items
        one.push_back(x->second.score / x->second.seeds);
        other.push_back(y->second.score / y->second.seeds);
    }
    return paired_test(one, other).p;
}

}  // namespace

double difference_p(const TestedModel& a, const TestedModel& b, const std::string& metric, std::int64_t shots) {
    if (a.each.size() > 1 && b.each.size() > 1) return welch_test(a.each, b.each).p;
    return paired_p(a, b, metric, shots);
}

double difference_p(const EvaluationGroup& a, std::int64_t a_length, const EvaluationGroup& b, std::int64_t b_length,
                    const Measured& what) {
    const EvaluationValue* const one = a.find(what, a_length);
    const EvaluationValue* const other = b.find(what, b_length);
    if (one == nullptr || other == nullptr) return kNoTest;
    return difference_p({one->each, a.members, what.task, a_length, what.subset},
                        {other->each, b.members, what.task, b_length, what.subset}, what.metric, what.shots);
}

}  // namespace headscope::figures

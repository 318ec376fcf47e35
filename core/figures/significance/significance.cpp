// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/significance/significance.h"

#include <limits>
#include <map>
#include <vector>

#include "core/figures/significance/t_test.h"

namespace headscope::figures {
namespace {

constexpr double kNoTest = std::numeric_limits<double>::quiet_NaN();

struct ItemSum {
    double right = 0, seeds = 0;
    std::int64_t gold = -1;
};

/// The share of a model's seeds that answered each item right.
std::map<std::int64_t, ItemSum> item_scores(const TestedModel& tested, std::int64_t shots) {
    std::map<std::int64_t, ItemSum> scores;
    for (const EvaluationMember& member : tested.members) {
        for (const store::EvaluatedItem& item : member.evaluation->items) {
            if (item.model != member.model || item.task != tested.task || item.length != tested.length ||
                item.shots != shots)
                continue;
            ItemSum& sum = scores[item.item];
            sum.right += item.right ? 1 : 0;
            sum.seeds += 1;
            sum.gold = item.gold;
        }
    }
    return scores;
}

double paired_p(const TestedModel& a, const TestedModel& b, const std::string& metric, std::int64_t shots) {
    if (metric != "acc" && metric != "accuracy" && metric != "contains") return kNoTest;
    const auto ours = item_scores(a, shots), others = item_scores(b, shots);
    if (ours.size() != others.size()) return kNoTest;
    std::vector<double> one, other;
    for (auto x = ours.begin(), y = others.begin(); x != ours.end(); ++x, ++y) {
        if (x->first != y->first || x->second.gold != y->second.gold) return kNoTest;  // not the same items
        one.push_back(x->second.right / x->second.seeds);
        other.push_back(y->second.right / y->second.seeds);
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
    return difference_p({one->each, a.members, what.task, a_length}, {other->each, b.members, what.task, b_length},
                        what.metric, what.shots);
}

}  // namespace headscope::figures

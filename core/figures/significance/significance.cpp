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
std::map<std::int64_t, ItemSum> item_scores(const EvaluationGroup& group, std::int64_t length, const Measured& what) {
    std::map<std::int64_t, ItemSum> scores;
    for (const EvaluationMember& member : group.members) {
        for (const store::EvaluatedItem& item : member.evaluation->items) {
            if (item.model != member.model || item.task != what.task || item.length != length ||
                item.shots != what.shots)
                continue;
            ItemSum& sum = scores[item.item];
            sum.right += item.right ? 1 : 0;
            sum.seeds += 1;
            sum.gold = item.gold;
        }
    }
    return scores;
}

double paired_p(const EvaluationGroup& a, std::int64_t a_length, const EvaluationGroup& b, std::int64_t b_length,
                const Measured& what) {
    if (what.metric != "acc" && what.metric != "contains") return kNoTest;
    const auto ours = item_scores(a, a_length, what), others = item_scores(b, b_length, what);
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

double difference_p(const EvaluationGroup& a, std::int64_t a_length, const EvaluationGroup& b, std::int64_t b_length,
                    const Measured& what) {
    const EvaluationValue* const one = a.find(what, a_length);
    const EvaluationValue* const other = b.find(what, b_length);
    if (one == nullptr || other == nullptr) return kNoTest;
    if (one->each.size() > 1 && other->each.size() > 1) return welch_test(one->each, other->each).p;
    return paired_p(a, a_length, b, b_length, what);
}

}  // namespace headscope::figures

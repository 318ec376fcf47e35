// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/harness/harness_passes.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace headscope::evaluation {
namespace {

// A pass ahead is a batch of its own, mostly a smaller one, and what follows it attends to a copy of its cache.
// Measured on a Llama (256 wide, 4 layers, one thread): behind beginnings of 32 tokens or more, where a quarter of the
// tokens or more is saved, 8 items at once are 1.4 to 2.9 times as fast, one item alone 0.9 to 2.3 times.
constexpr std::int64_t kLeastShared = 32;    // tokens that are worth it
constexpr std::int64_t kLeastPart = 4;       // 1 / 4 of all tokens must be saved
constexpr std::int64_t kSharedMultiple = 8;  // beginnings are cut to a multiple, so that many have one length

std::span<const std::int64_t> read_ids(const HarnessRequest& request) {
    return std::span(request.ids).first(request.ids.size() - 1);
}

/// Readings [first, last) of the order that begin with the same `shared` tokens.
struct Group {
    std::size_t first = 0, last = 0;
    std::int64_t shared = 0;
};

class Planner {
public:
    Planner(std::span<const HarnessRequest> requests, const PassRules& rules) : requests_(requests), rules_(rules) {}

    PassPlan run() {
        find_readings();
        if (rules_.reads_ahead && !rules_.equal_lengths) find_groups();
        std::vector<std::size_t> alone;
        std::size_t next = 0;
        for (const Group& group : groups_) {
            for (; next < group.first; ++next) alone.push_back(next);
            next = group.last;
        }
        for (; next < plan_.readings.size(); ++next) alone.push_back(next);
        add_alone(std::move(alone));
        add_groups();
        std::stable_sort(plan_.batches.begin(), plan_.batches.end(),
                         [&](const PassBatch& a, const PassBatch& b) { return longest(a) > longest(b); });
        return std::move(plan_);
    }

private:
    const Reading& reading(std::size_t index) const { return plan_.readings[index]; }
    const HarnessRequest& request(std::size_t index) const { return requests_[reading(index).requests.front()]; }
    std::int64_t longest(const PassBatch& batch) const {
        const Reading& first = reading(batch.passes.front().readings.front());
        return first.source + first.length;
    }

    /// In the order of their tokens, so that those that begin alike are neighbours.
    void find_readings() {
        const auto before = [&](std::size_t a, std::size_t b) {
            const HarnessRequest &x = requests_[a], &y = requests_[b];
            if (x.source != y.source) return x.source < y.source;
            const auto p = read_ids(x), q = read_ids(y);
            return std::lexicographical_compare(p.begin(), p.end(), q.begin(), q.end());
        };
        std::vector<std::size_t> order(requests_.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(), before);
        for (std::size_t i = 0; i < order.size(); ++i) {
            const HarnessRequest& one = requests_[order[i]];
            if (i == 0 || before(order[i - 1], order[i])) {
                Reading& made = plan_.readings.emplace_back();
                made.source = std::ssize(one.source);
                made.length = std::ssize(one.ids) - (one.source.empty() ? 1 : 0);
            }
            plan_.readings.back().requests.push_back(order[i]);
            plan_.readings.back().wanted = std::max(plan_.readings.back().wanted, one.scored);
        }
    }

    /// Tokens that two readings begin with; each keeps one of its own, for a pass has at least one.
    std::int64_t common(std::size_t a, std::size_t b) const {
        const HarnessRequest &x = request(a), &y = request(b);
        if (x.source != y.source) return 0;
        const auto p = read_ids(x), q = read_ids(y);
        const auto differs = std::mismatch(p.begin(), p.end(), q.begin(), q.end()).first;
        const std::int64_t start = x.source.empty() ? 0 : 1;
        return std::min({start + (differs - p.begin()), reading(a).length - 1, reading(b).length - 1});
    }

    /// Chooses disjoint runs of neighbors with a common beginning that save most. Common beginnings nest, so each is
    /// best taken whole or split into its parts.
    void find_groups() {
        struct Open {
            std::int64_t shared = 0;
            std::size_t first = 0;
            std::int64_t saved = 0;  ///< by the groups within
            std::size_t groups = 0;  ///< the first of them
        };
        std::vector<std::int64_t> sums{0};  // of the tokens of all readings before
        for (const Reading& one : plan_.readings) sums.push_back(sums.back() + one.source + one.length);
        std::vector<Open> open(1);
        for (std::size_t i = 1; i <= plan_.readings.size(); ++i) {
            const std::int64_t here = i < plan_.readings.size() ? common(i - 1, i) : 0;
            Open inner{here, i - 1, 0, groups_.size()};
            for (; open.back().shared > here; open.pop_back()) {
                const Open& whole = open.back();
                inner.first = whole.first;
                inner.groups = whole.groups;
                inner.saved += whole.saved;
                const std::int64_t saved = saving(whole.first, i, whole.shared);
                if (saved <= inner.saved || saved * kLeastPart < sums[i] - sums[whole.first]) continue;
                groups_.resize(inner.groups);
                groups_.push_back({whole.first, i, cut(whole.first, whole.shared)});
                inner.saved = saved;
            }
            if (open.back().shared < here)
                open.push_back(inner);
            else
                open.back().saved += inner.saved;
        }
    }

    std::int64_t cut(std::size_t first, std::int64_t shared) const {
        return reading(first).source > 0 ? shared : shared - shared % kSharedMultiple;
    }

    /// Tokens that need not be read where [first, last) have one beginning read ahead; 0: it is too short.
    std::int64_t saving(std::size_t first, std::size_t last, std::int64_t shared) const {
        const std::int64_t ahead = reading(first).source + cut(first, shared);
        return ahead < kLeastShared ? 0 : (static_cast<std::int64_t>(last - first) - 1) * ahead;
    }

    void add_alone(std::vector<std::size_t> alone) {
        std::stable_sort(alone.begin(), alone.end(), [&](std::size_t a, std::size_t b) {
            return std::tie(reading(a).source, reading(a).length) > std::tie(reading(b).source, reading(b).length);
        });
        std::int64_t source = 0, length = 0;  // of the batch's longest
        for (const std::size_t one : alone) {
            const Reading& next = reading(one);
            bool fits = !alone_.empty();
            if (fits) {
                const std::int64_t wide = std::max(source, next.source) + std::max(length, next.length);
                fits = wide * (std::ssize(alone_) + 1) <= rules_.batch_tokens &&
                       !(rules_.equal_lengths && (next.source != source || next.length != length));
            }
            if (!fits) flush_alone();
            source = fits ? std::max(source, next.source) : next.source;
            length = fits ? std::max(length, next.length) : next.length;
            alone_.push_back(one);
        }
        flush_alone();
    }

    void flush_alone() {
        if (!alone_.empty()) plan_.batches.push_back({0, {}, {{std::move(alone_), {}}}});
        alone_.clear();
    }

    /// Tokens of a group's longest reading.
    std::int64_t longest(const Group& group) const {
        std::int64_t most = 0;
        for (std::size_t i = group.first; i < group.last; ++i) most = std::max(most, reading(i).length);
        return most;
    }

    /// Beginnings of one length are read together, as many as a batch holds.
    void add_groups() {
        const auto key = [&](const Group& group) {
            return std::tuple(reading(group.first).source, group.shared, longest(group));
        };
        std::stable_sort(groups_.begin(), groups_.end(),
                         [&](const Group& a, const Group& b) { return key(a) > key(b); });
        std::size_t first = 0;
        while (first < groups_.size()) {
            const std::int64_t source = reading(groups_[first].first).source, shared = groups_[first].shared;
            std::size_t last = first + 1;
            while (last < groups_.size() && reading(groups_[last].first).source == source &&
                   groups_[last].shared == shared &&
                   (source + shared) * static_cast<std::int64_t>(last - first + 1) <= rules_.batch_tokens)
                ++last;
            add_batch(std::span(groups_).subspan(first, last - first));
            first = last;
        }
    }

    void add_batch(std::span<const Group> groups) {
        PassBatch& batch = plan_.batches.emplace_back();
        batch.shared = groups.front().shared;
        std::vector<std::pair<std::size_t, std::size_t>> all;  // reading, context
        for (const Group& group : groups) {
            for (std::size_t i = group.first; i < group.last; ++i) all.emplace_back(i, batch.contexts.size());
            batch.contexts.push_back(group.first);
        }
        std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
            return reading(a.first).length > reading(b.first).length;
        });
        std::size_t next = 0;
        while (next < all.size()) {
            const Reading& most = reading(all[next].first);
            const std::int64_t room = std::max<std::int64_t>(1, rules_.batch_tokens / (most.source + most.length));
            Pass& pass = batch.passes.emplace_back();
            for (std::int64_t i = 0; i < room && next < all.size(); ++i, ++next) {
                pass.readings.push_back(all[next].first);
                pass.contexts.push_back(all[next].second);
            }
        }
    }

    std::span<const HarnessRequest> requests_;
    const PassRules& rules_;
    PassPlan plan_;
    std::vector<Group> groups_;
    std::vector<std::size_t> alone_;
};

}  // namespace

PassPlan plan_passes(std::span<const HarnessRequest> requests, const PassRules& rules) {
    return Planner(requests, rules).run();
}

}  // namespace headscope::evaluation

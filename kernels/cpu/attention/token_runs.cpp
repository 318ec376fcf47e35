// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cpu/attention/token_runs.h"

#include <algorithm>
#include <unordered_map>

namespace headscope::kernels::cpu {

TokenRuns::TokenRuns(std::span<const std::int32_t> tokens, std::int64_t key_begin, std::int64_t key_end)
    : key_begin_(key_begin), key_end_(key_end) {
    std::unordered_map<std::int32_t, std::int32_t> numbers;
    token_number_.reserve(tokens.size());
    for (const std::int32_t token : tokens) {
        token_number_.push_back(numbers.try_emplace(token, static_cast<std::int32_t>(numbers.size())).first->second);
    }
    std::vector<std::vector<Run>> by_number(numbers.size());
    for (std::int64_t j = key_begin; j < key_end; ++j) {
        auto& runs = by_number[static_cast<std::size_t>(token_number_[static_cast<std::size_t>(j)])];
        if (!runs.empty() && runs.back().end == j)
            ++runs.back().end;
        else
            runs.push_back({j, j + 1});
    }
    first_run_.push_back(0);
    for (const auto& runs : by_number) {
        runs_.insert(runs_.end(), runs.begin(), runs.end());
        first_run_.push_back(static_cast<std::int64_t>(runs_.size()));
    }
}

void TokenRuns::find(std::int64_t position, int rows, std::int64_t key, std::int64_t count, SegmentLists& out) const {
    const auto add = [key](std::vector<Segment>& list, int row, std::int64_t begin, std::int64_t end) {
        list.push_back({static_cast<std::int16_t>(row), static_cast<std::int16_t>(begin - key),
                        static_cast<std::int16_t>(end - key)});
    };
    for (int r = 0; r < rows; ++r) {
        const std::int64_t i = position + r;
        if (i < key_begin_ || i >= key_end_ || i < key) continue;
        const auto number = static_cast<std::size_t>(token_number_[static_cast<std::size_t>(i)]);
        const auto end = runs_.begin() + first_run_[number + 1];
        const std::int64_t stop = std::min(key + count, i + 1);  // neither score looks beyond the query
        auto run =
            std::partition_point(runs_.begin() + first_run_[number], end, [key](const Run& x) { return x.end < key; });
        for (; run != end && run->begin < stop; ++run) {
            const std::int64_t begin = std::max(run->begin, key), last = std::min({run->end, stop, i});
            if (begin < last) add(out.duplicate, r, begin, last);
            const std::int64_t after = std::max(run->begin + 1, key);
            const std::int64_t after_last = std::min({run->end + 1, stop, key_end_});
            if (after < after_last) add(out.induction, r, after, after_last);
        }
    }
}

}  // namespace headscope::kernels::cpu

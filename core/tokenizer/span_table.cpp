// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/span_table.h"

#include <algorithm>

namespace headscope::tokenizer {

void SpanTable::reserve(std::size_t bytes) {
    codes_.reserve(bytes);
    marks_.reserve(bytes / mark_distance + 1);
}

void SpanTable::Reader::go_to_mark(std::size_t place) {
    const std::size_t mark = place / mark_distance;
    place_ = mark * mark_distance;
    span_ = table_->marks_[mark];
}

void SpanTable::Reader::step() {
    ++place_;
    const auto code = static_cast<unsigned char>(table_->codes_[place_]);
    if (code == 0) return;
    if (code == odd) {
        const auto& list = table_->odd_;
        span_ = std::lower_bound(list.begin(), list.end(), place_, [](const Odd& entry, std::size_t wanted) {
                    return entry.place < wanted;
                })->span;
        return;
    }
    const std::uint32_t begin = span_.end + (code - 1) / 4;
    span_ = {begin, begin + (code - 1) % 4 + 1};
}

}  // namespace headscope::tokenizer

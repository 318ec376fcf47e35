// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/value_budget.h"

#include <iterator>

#include "widgets/desk/study.h"

namespace headscope::widgets {

ValueBudget::Place ValueBudget::add(Study* study, const std::string& key) {
    asked_ = true;
    return values_.insert(values_.end(), {study, key, 0, *round_});
}

void ValueBudget::touch(Place value) {
    asked_ = true;
    put_last(value);
}

void ValueBudget::put_last(Place value) {
    values_.splice(values_.end(), values_, value);
    value->round = *round_;
}

void ValueBudget::next_round() {
    if (asked_) ++*round_;
    asked_ = false;
}

void ValueBudget::remove(Place value) {
    bytes_ -= value->bytes;
    values_.erase(value);
}

void ValueBudget::set_bytes(Place value, std::int64_t bytes) {
    bytes_ += bytes - value->bytes;
    value->bytes = bytes;
    put_last(value);
}

void ValueBudget::trim() {
    Place value = values_.begin();
    for (std::size_t left = values_.size(); bytes_ > most_bytes_ && left > 1; --left) {
        if (value->round + rounds_ > *round_) return;
        const Place next = std::next(value);
        if (value->bytes > 0) value->study->drop_value(value->key);
        value = next;
    }
}

}  // namespace headscope::widgets

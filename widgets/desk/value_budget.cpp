// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/value_budget.h"

#include <iterator>

#include "widgets/desk/study.h"

namespace headscope::widgets {

ValueBudget::Place ValueBudget::add(Study* study, const std::string& key) {
    return values_.insert(values_.end(), {study, key});
}

void ValueBudget::touch(Place value) {
    values_.splice(values_.end(), values_, value);
    value->asked = Clock::now();
}

void ValueBudget::remove(Place value) {
    bytes_ -= value->bytes;
    values_.erase(value);
}

void ValueBudget::set_bytes(Place value, std::int64_t bytes) {
    bytes_ += bytes - value->bytes;
    value->bytes = bytes;
    touch(value);
}

void ValueBudget::trim() {
    const auto before = Clock::now() - wanted_;
    Place value = values_.begin();
    for (std::size_t left = values_.size(); bytes_ > most_bytes_ && left > 1 && value->asked <= before; --left) {
        const Place next = std::next(value);
        if (value->bytes > 0) value->study->drop_value(value->key);
        value = next;
    }
}

}  // namespace headscope::widgets

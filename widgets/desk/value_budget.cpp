// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/value_budget.h"

#include <algorithm>

#include "widgets/desk/study.h"

namespace headscope::widgets {

void ValueBudget::leave(Study* study) {
    studies_.erase(std::remove(studies_.begin(), studies_.end(), study), studies_.end());
}

void ValueBudget::trim() {
    while (bytes_ > most_bytes_) {
        Study* oldest = nullptr;
        std::uint64_t asked = clock_;  // what was asked for last stays, however large
        for (Study* study : studies_) {
            const std::uint64_t used = study->oldest_value();
            if (used == 0 || used >= asked) continue;
            asked = used;
            oldest = study;
        }
        if (!oldest) return;
        oldest->drop_oldest_value();
    }
}

}  // namespace headscope::widgets

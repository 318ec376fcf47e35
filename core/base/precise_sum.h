// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cmath>

namespace headscope {

/// Neumaier's sum: its error does not grow with the number of terms, so their order rarely changes a bit of value().
class PreciseSum {
public:
    void add(double value) {
        const double sum = sum_ + value;
        rest_ += std::abs(sum_) >= std::abs(value) ? (sum_ - sum) + value : (value - sum) + sum_;
        sum_ = sum;
    }
    void add(const PreciseSum& other) {
        add(other.sum_);
        rest_ += other.rest_;
    }
    double value() const { return std::isfinite(rest_) ? sum_ + rest_ : sum_; }

private:
    double sum_ = 0, rest_ = 0;
};

}  // namespace headscope

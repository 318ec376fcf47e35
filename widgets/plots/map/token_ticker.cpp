// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/map/token_ticker.h"

#include <algorithm>
#include <cmath>

namespace headscope::widgets {
namespace {

constexpr double kNumberRoom = 70;  ///< pixels between positions

/// 1, 2, 5, 10, 20, ... cells between ticks.
std::int64_t round_step(double least) {
    std::int64_t step = 1;
    for (;;) {
        for (const std::int64_t factor : {1, 2, 5})
            if (static_cast<double>(step * factor) >= least) return step * factor;
        step *= 10;
    }
}

}  // namespace

bool TokenTicker::shows_tokens(const QCPRange& range) const {
    return !labels_.empty() && range.size() > 0 && length_ / range.size() >= label_room_;
}

std::int64_t TokenTicker::step(const QCPRange& range) const {
    if (shows_tokens(range) || !(range.size() > 0) || !(range.size() < 1e12)) return 1;
    return round_step(std::min(range.size(), kNumberRoom * range.size() / std::max(kNumberRoom, length_)));
}

void TokenTicker::generate(const QCPRange& range, const QLocale&, QChar, int, QVector<double>& ticks,
                           QVector<double>* sub_ticks, QVector<QString>* labels) {
    ticks.clear();
    if (sub_ticks) sub_ticks->clear();
    if (labels) labels->clear();
    if (!(range.size() > 0) || !(range.size() < 1e12)) return;
    const bool tokens = shows_tokens(range);
    const std::int64_t step = this->step(range);
    auto cell = static_cast<std::int64_t>(std::floor(range.lower - 0.5)) / step * step;
    for (; static_cast<double>(cell) + 0.5 <= range.upper; cell += step) {
        const double middle = static_cast<double>(cell) + 0.5;
        if (cell < 0 || middle < range.lower) continue;
        if (tokens && cell >= std::ssize(labels_)) break;
        ticks.append(middle);
        if (labels) labels->append(tokens ? labels_[static_cast<std::size_t>(cell)] : QString::number(cell));
    }
}

}  // namespace headscope::widgets

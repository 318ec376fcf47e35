// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/ticks.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace headscope::widgets {
namespace {

using figures::ScaleKind;

std::vector<double> linear_ticks(double low, double high, int wanted) {
    const double rough = (high - low) / std::max(1, wanted);
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (const double factor : {1.0, 2.0, 5.0}) {
        if (factor * power >= rough * 0.999) {
            step = factor * power;
            break;
        }
    }
    std::vector<double> ticks;
    // Counted in integers: far from zero a step can be too small to change a double.
    constexpr int kMost = 1000;
    const double first = std::ceil(low / step - 1e-9);
    for (int i = 0; i < kMost; ++i) {
        const double tick = (first + i) * step;
        if (!(tick <= high + step * 1e-9)) break;
        if (ticks.empty() || tick > ticks.back()) ticks.push_back(tick);
    }
    return ticks;
}

/// Powers of ten first, then 5 and 2 times them, each when it is far enough from those already there.
std::vector<double> spread_ticks(ScaleKind scale, double low, double high, int wanted, double linear_range) {
    const auto place = [&](double value) { return figures::scaled(scale, value, linear_range); };
    const double apart = (place(high) - place(low)) / std::max(1, wanted) * 0.7;
    constexpr std::size_t kEnough = 5;
    std::vector<double> ticks;
    const auto offer = [&](double value) {
        if (value < low * (low > 0 ? 1 - 1e-9 : 1 + 1e-9) - 1e-300 || value > high * (high > 0 ? 1 + 1e-9 : 1 - 1e-9)) {
            return;
        }
        for (const double tick : ticks) {
            if (std::abs(place(tick) - place(value)) < apart) return;
        }
        ticks.push_back(value);
    };
    if (low <= 0 && high >= 0) offer(0);
    const double largest = std::max(std::abs(low), std::abs(high));
    if (!(largest > 0)) return {0};
    const int top = static_cast<int>(std::ceil(std::log10(largest)));
    for (const double factor : {1.0, 5.0, 2.0}) {
        if (ticks.size() >= kEnough) break;
        for (int power = top; power > top - 14; --power) {
            const double value = factor * std::pow(10.0, power);
            offer(value);
            offer(-value);
        }
    }
    std::sort(ticks.begin(), ticks.end());
    return ticks;
}

}  // namespace

std::vector<double> round_ticks(ScaleKind scale, double low, double high, int wanted, double linear_range) {
    if (low > high) std::swap(low, high);
    if (!(high > low) || !std::isfinite(low) || !std::isfinite(high)) return {low};
    if (scale == ScaleKind::linear) return linear_ticks(low, high, wanted);
    return spread_ticks(scale, low, high, wanted, linear_range);
}

QString number_label(double value) {
    static const std::array<QString, 10> raised{"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    if (value == 0) return "0";
    if (std::isnan(value)) return "–";
    if (std::isinf(value)) return value < 0 ? "−∞" : "∞";
    const double size = std::abs(value);
    QString text;
    if (size >= 9999.5 || size < 0.0009995) {
        int power = static_cast<int>(std::floor(std::log10(size) + 1e-9));
        double factor = size / std::pow(10.0, power);
        if (factor > 9.995) {
            factor /= 10;
            ++power;
        }
        if (std::abs(factor - 1) > 1e-3) text = QString::number(factor, 'g', 3) + "·";
        text += "10";
        if (power < 0) text += "⁻";
        for (const QChar digit : QString::number(std::abs(power))) {
            text += raised[static_cast<std::size_t>(digit.digitValue())];
        }
    } else {
        text = QString::number(size, 'g', 4);
    }
    return value < 0 ? "−" + text : text;
}

std::int64_t round_stride(double least) {
    for (std::int64_t power = 1; power <= 1'000'000'000'000; power *= 10) {
        for (const std::int64_t factor : {1, 2, 4, 5, 8}) {
            if (power > 1 && factor == 8) continue;
            if (static_cast<double>(factor * power) >= least) return factor * power;
        }
    }
    return 1'000'000'000'000;
}

}  // namespace headscope::widgets

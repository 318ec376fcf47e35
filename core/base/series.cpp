// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/series.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace headscope {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

}  // namespace

double finite_mean(std::span<const double> values) {
    return finite_mean(values, 0, values.size(), 1);
}

double finite_mean(std::span<const double> values, std::size_t first, std::size_t count, std::size_t step) {
    double sum = 0, finite = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const double value = values[first + i * step];
        if (!std::isfinite(value)) continue;
        sum += value;
        ++finite;
    }
    return finite > 0 ? sum / finite : kNone;
}

double correlation(std::span<const double> x, std::span<const double> y) {
    const auto mean_of = [](std::span<const double> values) {
        return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    };
    const double x_mean = mean_of(x), y_mean = mean_of(y);
    double xy = 0, xx = 0, yy = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        xy += (x[i] - x_mean) * (y[i] - y_mean);
        xx += (x[i] - x_mean) * (x[i] - x_mean);
        yy += (y[i] - y_mean) * (y[i] - y_mean);
    }
    return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : kNone;
}

std::vector<double> running_mean(std::span<const double> values, std::size_t window, std::size_t behind) {
    std::vector<double> means;
    means.reserve(values.size());
    double sum = 0;
    std::size_t count = 0, added = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        for (; added < values.size() && added <= i + behind; ++added) {
            if (!std::isfinite(values[added])) continue;
            sum += values[added];
            ++count;
        }
        if (i + behind >= window && std::isfinite(values[i + behind - window])) {
            sum -= values[i + behind - window];
            --count;
        }
        means.push_back(count > 0 ? sum / static_cast<double>(count) : kNone);
    }
    return means;
}

std::vector<double> smoothed(std::span<const double> values, double weight) {
    weight = std::clamp(weight, 0.0, 0.99999);
    std::vector<double> means;
    means.reserve(values.size());
    double sum = 0, weights = 0;
    for (const double value : values) {
        if (!std::isnan(value)) {
            sum = sum * weight + value;
            weights = weights * weight + 1;
        }
        means.push_back(weights > 0 ? sum / weights : kNone);
    }
    return means;
}

std::vector<std::size_t> kept_points(std::span<const double> values, std::size_t most, bool ends) {
    std::vector<std::size_t> kept;
    const std::size_t count = values.size(), stretches = std::max<std::size_t>(1, most / 2);
    if (count <= most) {
        for (std::size_t i = 0; i < count; ++i) kept.push_back(i);
        return kept;
    }
    const std::size_t before = ends ? 1 : 0, between = count - std::min(count, 2 * before);
    if (ends) kept.push_back(0);
    for (std::size_t k = 0; k < stretches; ++k) {
        const std::size_t begin = before + k * between / stretches, end = before + (k + 1) * between / stretches;
        if (begin == end) continue;
        std::size_t low = begin, high = begin;
        for (std::size_t i = begin; i < end; ++i) {
            if (values[i] < values[low] || std::isnan(values[low])) low = i;
            if (values[i] > values[high] || std::isnan(values[high])) high = i;
        }
        kept.push_back(std::min(low, high));
        if (low != high) kept.push_back(std::max(low, high));
    }
    if (ends && count > 1) kept.push_back(count - 1);
    return kept;
}

}  // namespace headscope

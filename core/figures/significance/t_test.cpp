// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/significance/t_test.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "core/base/error.h"

namespace headscope::figures {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

struct Sample {
    double mean = 0, variance = 0, size = 0;  ///< variance with n - 1
};

Sample sample_of(std::span<const double> values) {
    Sample sample;
    sample.size = static_cast<double>(values.size());
    for (const double value : values) sample.mean += value;
    sample.mean /= sample.size;
    for (const double value : values) sample.variance += (value - sample.mean) * (value - sample.mean);
    sample.variance /= sample.size - 1;
    return sample;
}

/// ln(Gamma(a + 1/2) / Gamma(a)), by Stirling's series from a = 20 on: the difference of two large logarithms would
/// lose digits. Below, by the recurrence Gamma(a + 1) = a Gamma(a).
double log_gamma_step(double a) {
    double shift = 0;
    for (; a < 20; a += 1) shift += std::log(a / (a + 0.5));
    const double r = 1 / (a * a);
    return shift + 0.5 * std::log(a) -
           (1.0 / 8 - r * (1.0 / 192 - r * (1.0 / 640 - r * (17.0 / 14336 - r * 31.0 / 18432)))) / a;
}

/// The continued fraction of the incomplete beta function, by Lentz' method (Numerical Recipes 6.4).
double beta_fraction(double a, double b, double x) {
    constexpr double kTiny = 1e-300, kPrecision = 1e-16;
    constexpr int kMost = 100'000;
    const auto kept = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
    double c = 1, d = 1 / kept(1 - (a + b) * x / (a + 1)), h = d;
    for (int i = 1; i < kMost; ++i) {
        const double m = i;
        for (const double term : {m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                                  -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))}) {
            d = 1 / kept(1 + term * d);
            c = kept(1 + term / c);
            h *= c * d;
        }
        if (std::abs(c * d - 1) < kPrecision) break;
    }
    return h;
}

TTest test(double difference, double variance, double degrees) {
    if (variance == 0) {
        if (difference == 0) return {kUndefined, degrees, kUndefined};
        return {std::copysign(std::numeric_limits<double>::infinity(), difference), degrees, 0};
    }
    const double t = difference / std::sqrt(variance);
    return {t, degrees, student_p(t, degrees)};
}

}  // namespace

double student_p(double t, double degrees) {
    if (std::isnan(t) || !(degrees > 0)) return kUndefined;
    if (std::isinf(t)) return 0;
    // I_x(a, 1/2) with x = degrees / (degrees + t^2), and 1 - x without cancellation.
    const double a = degrees / 2, b = 0.5, square = t * t;
    const double x = degrees / (degrees + square), rest = square / (degrees + square);
    if (rest == 0) return 1;
    if (x == 0) return 0;
    const double log_x = x < 0.5 ? std::log(x) : std::log1p(-rest);
    const double front =
        std::exp(a * log_x + b * std::log(rest) + log_gamma_step(a) - 0.5 * std::log(std::numbers::pi));
    if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, rest) / b;
}

TTest welch_test(std::span<const double> a, std::span<const double> b) {
    if (a.size() < 2 || b.size() < 2) return {kUndefined, kUndefined, kUndefined};
    const Sample one = sample_of(a), other = sample_of(b);
    const double u = one.variance / one.size, v = other.variance / other.size;
    const double below = u * u / (one.size - 1) + v * v / (other.size - 1);
    return test(one.mean - other.mean, u + v, below == 0 ? 1 : (u + v) * (u + v) / below);
}

TTest paired_test(std::span<const double> a, std::span<const double> b) {
    if (a.size() != b.size())
        throw Error(ErrorCode::internal, "paired_test", "expected " + std::to_string(a.size()) + " values",
                    "found " + std::to_string(b.size()));
    if (a.size() < 2) return {kUndefined, kUndefined, kUndefined};
    std::vector<double> differences(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) differences[i] = a[i] - b[i];
    const Sample sample = sample_of(differences);
    return test(sample.mean, sample.variance / sample.size, sample.size - 1);
}

}  // namespace headscope::figures

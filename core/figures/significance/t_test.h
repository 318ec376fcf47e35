// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Student's t-tests, as scipy.stats has them. Threads: any.

#include <span>

namespace headscope::figures {

struct TTest {
    double t = 0;        ///< infinite where the means differ and nothing varies
    double degrees = 0;  ///< of freedom
    double p = 0;        ///< two-sided; NaN: undefined (fewer than two values, or equal means of constants)
};

/// Two-sided p of |t| with `degrees` of freedom, to 1e-9 of scipy's. NaN for NaN or degrees <= 0.
double student_p(double t, double degrees);

/// ttest_ind(a, b, equal_var=False): Welch's test of two means.
TTest welch_test(std::span<const double> a, std::span<const double> b);

/// ttest_rel(a, b): the test of the mean difference of pairs. Throws Error internal for unequal sizes.
TTest paired_test(std::span<const double> a, std::span<const double> b);

}  // namespace headscope::figures

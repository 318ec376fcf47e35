// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace headscope::model {

/// `approximate`: the Taylor weights t(s) = 1 + s + s^2 / 2.
struct ApproximateOptions {
    enum class SecondOrder {
        full,     ///< s^2 / 2
        diagonal  ///< sum over the head's numbers of (q_c k_c)^2 / (2 d_h): Appendix I
    };
    enum class Normalisation {
        joint,     ///< one denominator
        per_order  ///< one for each order: a row sums to 3 (Eq. 14)
    };
    SecondOrder second_order = SecondOrder::full;
    Normalisation normalisation = Normalisation::joint;
};

/// What "mixers" of a native configuration holds: options by mixer name. A mixer that has some adds its struct here and
/// its lines to read_mixer_options and mixer_options_json (core/model/config_reader.h).
struct MixerOptions {
    ApproximateOptions approximate;
};

}  // namespace headscope::model

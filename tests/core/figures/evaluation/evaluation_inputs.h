// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Made-up evaluations as inputs of figures.

#include <memory>

#include "core/figures/figure_inputs.h"
#include "core/store/evaluation/evaluation_file.h"
#include "tests/core/figures/sample_records.h"

namespace headscope::test {

inline figures::FigureInputs inputs_of(const store::Evaluation& evaluation) {
    figures::FigureInputs inputs;
    inputs.evaluations.push_back(std::make_shared<const store::Evaluation>(evaluation));
    return inputs;
}

inline figures::FigureInputs evaluated() {
    return inputs_of(sample_evaluation());
}

inline figures::FigureInputs on_long_texts() {
    return inputs_of(sample_long_evaluation());
}

}  // namespace headscope::test

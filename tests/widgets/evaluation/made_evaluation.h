// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "core/store/evaluation/evaluation_file.h"
#include "tests/core/figures/sample_records.h"

namespace headscope::tests {

/// sample_evaluation(), shared as the shelf keeps it.
inline std::shared_ptr<const store::Evaluation> sample() {
    return std::make_shared<const store::Evaluation>(test::sample_evaluation());
}

}  // namespace headscope::tests

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// For tests of circuits: a record of `ask circuits`, and numbers of matrices by their definitions.

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_eigvals.h>
#include <ATen/ops/real.h>

#include "core/ask/circuits/circuits.h"
#include "core/base/progress.h"
#include "core/store/ask/ask_file.h"
#include "tests/core/ask/asked_model.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace headscope::test {

inline store::AskRecord circuits_of(const AskedModel& asked, const ask::circuits::CircuitsOptions& options = {}) {
    store::AskRecord record;
    record.tool = "circuits";
    record.mixers = asked.model->mixers();
    record.sites = asked.model->sites();
    store::add_usual_dimensions(record);
    NoProgress progress;
    run_circuits(*asked.model, options, record, progress, Cancellation());
    return record;
}

/// Within some roundings of float32, relative to the largest number.
inline bool same(const at::Tensor& a, const at::Tensor& b) {
    if (a.sizes() != b.sizes()) return false;
    const double apart = (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
    return apart <= kFloatError * std::max(1.0, largest_value(b));
}

/// Sum of the eigenvalues over that of their sizes.
inline double score_of(const at::Tensor& matrix) {
    const at::Tensor values = at::linalg_eigvals(matrix);
    return (at::real(values).sum() / values.abs().sum()).item<double>();
}

/// The Frobenius norm.
inline double norm_of(const at::Tensor& matrix) {
    return matrix.square().sum().sqrt().item<double>();
}

}  // namespace headscope::test

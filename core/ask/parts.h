// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Parts of a model's stack that tools read: norms, projections, head.

#include <ATen/core/Tensor.h>

#include "core/model/towers/stack.h"

namespace headscope::ask {

/// The stack of any model that Model::build() or Trainable makes. Throws unsupported for another one.
const model::Stack& stack_of(const model::Model& model);

/// The model's own final norm of rows [.., d]; the rows themselves where the family has none.
at::Tensor final_norm(const model::Model& model, const at::Tensor& rows);

}  // namespace headscope::ask

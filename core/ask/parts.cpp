// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/parts.h"

#include <c10/core/InferenceMode.h>

#include "core/base/error.h"
#include "core/model/device.h"

namespace headscope::ask {

const model::Stack& stack_of(const model::Model& model) {
    if (const auto* stack = dynamic_cast<const model::Stack*>(&model)) return *stack;
    throw Error(ErrorCode::unsupported, "ask", "expected a model with a stack of blocks", "found another one");
}

at::Tensor final_norm(const model::Model& model, const at::Tensor& rows) {
    const c10::InferenceMode inference;
    return model::on_processor(stack_of(model).tower().final_norm()(model::on_device(rows, model.device())));
}

}  // namespace headscope::ask

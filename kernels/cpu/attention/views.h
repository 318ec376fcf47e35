// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Sequences of a batch as the tasks of the vector loops name them. For code that is compiled for the baseline processor
// only.

#include "kernels/cpu/attention/backward.h"

namespace headscope::kernels::cpu {

inline HeadMatrix matrix_of(const TensorView& view, std::int64_t b) {
    const std::int64_t bytes = view.type == ElementType::float32 ? 4 : 2;
    return {static_cast<const char*>(view.data) + b * view.batch_stride * bytes, view.type, view.head_stride,
            view.row_stride};
}

inline HeadTarget target_of(const MutableView& view, std::int64_t b) {
    if (view.data == nullptr) return {};
    const std::int64_t bytes = view.type == ElementType::float32 ? 4 : 2;
    return {static_cast<char*>(view.data) + b * view.batch_stride * bytes, view.type, view.head_stride,
            view.row_stride};
}

}  // namespace headscope::kernels::cpu

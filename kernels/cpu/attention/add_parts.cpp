// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cpu/attention/backward.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/add_parts.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/attention/scores-inl.h"
#include "kernels/cpu/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

void AddParts(const AddPartsTask& task) {
    const F32 d;
    for (std::int64_t r = 0; r < task.rows; ++r) {
        const std::int64_t from = r * task.size, to = r * task.target.row_stride;
        ForVectors(d, task.size, [&](std::int64_t c, const auto& load, const auto& store) HWY_ATTR {
            V sum = load(task.parts + from + c);
            for (std::int64_t n = 1; n < task.count; ++n)
                sum = hn::Add(sum, load(task.parts + n * task.stride + from + c));
            if (task.target.type == ElementType::float32)
                store(sum, static_cast<float*>(task.target.data) + to + c);
            else
                store(sum, static_cast<std::uint16_t*>(task.target.data) + to + c);
        });
    }
}

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::kernels::cpu {

HWY_EXPORT(AddParts);

void add_parts(const AddPartsTask& task) {
    HWY_DYNAMIC_DISPATCH(AddParts)(task);
}

std::int64_t backward_scratch(const Sequence& s, std::int64_t keys) {
    const std::int64_t padded_keys = (keys + kBackwardKeys - 1) / kBackwardKeys * kBackwardKeys;
    const std::int64_t queries = (s.queries + kMostRows - 1) / kMostRows * kMostRows;
    const std::int64_t key_size = pad_to_line(s.key_size), value_size = pad_to_line(s.value_size);
    constexpr std::int64_t ends = 13 * 16;  // each part begins at a cache line
    return padded_keys * (3 * key_size + 2 * value_size) + queries * (3 * key_size + 2 * value_size + 1) +
           2 * kBackwardRows * kBackwardKeys + ends;
}

}  // namespace headscope::kernels::cpu
#endif

// SPDX-License-Identifier: GPL-3.0-or-later
// Keys as the micro-kernel reads them: panels of two vectors' width, each [key_size][width] in float32. Keys that
// padding hides, and those beyond the last, are 0.
#include "kernels/cpu/attention/tasks.h"
#include "kernels/cpu/attention/visibility.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/pack.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/attention/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

void PackKeys(const PackTask& task) {
    const Sequence& s = *task.sequence;
    const std::int64_t width = PanelWidth(), size = s.key_size;
    for (std::int64_t first = task.key_begin; first < task.key_end; first += width) {
        float* HWY_RESTRICT panel = task.packed + task.key_head * s.packed_head_stride + first * size;
        const std::int64_t begin = HWY_MAX(first, s.key_begin), end = HWY_MIN(first + width, s.key_end);
        if (begin > first || end < first + width) {
            for (std::int64_t x = 0; x < size * width; ++x) panel[x] = 0.0f;
        }
        const std::int64_t row = task.key_head * s.key.head_stride + begin * s.key.row_stride;
        ScatterRows(s.key, row, end - begin, size, 1.0f, width, panel + (begin - first));
    }
}

TargetInfo DescribeTarget() {
    return {hwy::TargetName(HWY_TARGET), kRows, static_cast<std::int64_t>(hn::Lanes(F32()))};
}

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::kernels::cpu {

HWY_EXPORT(PackKeys);
HWY_EXPORT(DescribeTarget);

void pack_keys(const PackTask& task) {
    HWY_DYNAMIC_DISPATCH(PackKeys)(task);
}

TargetInfo target_info() {
    return HWY_DYNAMIC_DISPATCH(DescribeTarget)();
}

}  // namespace headscope::kernels::cpu
#endif

// SPDX-License-Identifier: GPL-3.0-or-later
// The plugin's entry `attention_backward`: row means, then a launch for each gradient.
#include "kernels/gpu/device/backward.h"

#include "kernels/gpu/device/backward_rule.h"
#include "kernels/gpu/device/entries.h"

namespace headscope::gpu {
namespace {

std::int64_t tiles_of(int rows) {
    return (rows + kTile - 1) / kTile;
}

template <template <Of, int> class Kernel, Of kOf>
void gradient(Launcher& launcher, const HsBackward& b, std::int64_t blocks, int size) {
    constexpr int kWide = 128;
    for (int column = 0; column < size; column += kWide) {
        const GradientArgs args{b, column};
        if (size - column > kWide / 2)
            launcher.run<Kernel<kOf, kWide>>(blocks, args);
        else
            launcher.run<Kernel<kOf, kWide / 2>>(blocks, args);
    }
}

/// Gradients of what the rule adds to pairs.
template <class Products>
void gradients_of_rule(Launcher& launcher, const HsBackward& b) {
    const HsAttention& a = b.a;
    RuleGradientArgs args{b, a.rule};
    if (b.diagonals != nullptr)
        launcher.run<DiagonalGradient<Products>>(tiles_of(a.queries + a.keys - 1) * a.heads, args);
    if (b.hidden_blocks != 0) args.rule.block_size = 0;
    if (b.of_keys != nullptr) launcher.run<KeyGradient<Products>>(tiles_of(a.keys) * a.heads, args);
}

/// Row means that need a sweep, and the gradients of q, k, v and the rule. Kernel: Gradient or GradientMma.
template <template <Of, int> class Kernel, class Products>
void gradients(Launcher& launcher, const HsBackward& b) {
    const HsAttention& a = b.a;
    const std::int64_t query_blocks = tiles_of(a.queries) * a.heads, key_blocks = tiles_of(a.keys) * a.key_heads;
    if (kernels::traits_of(static_cast<Normaliser>(a.normaliser)).two_runs())
        launcher.run<Kernel<Of::rows, 64>>(query_blocks, GradientArgs{b, 0});
    if (b.query.data != nullptr) gradient<Kernel, Of::query>(launcher, b, query_blocks, a.key_size);
    if (b.key.data != nullptr) gradient<Kernel, Of::key>(launcher, b, key_blocks, a.key_size);
    if (b.value.data != nullptr) gradient<Kernel, Of::value>(launcher, b, key_blocks, a.value_size);
    gradients_of_rule<Products>(launcher, b);
}

void launch_gradients(Launcher& launcher, const HsBackward& b) {
    if constexpr (kCompilesMma) {
        if (b.gradient.type == HS_BFLOAT16 && takes_mma(b.a)) return gradients<GradientMma, MmaProducts>(launcher, b);
    }
    gradients<Gradient, FmaProducts>(launcher, b);
}

}  // namespace

void attention_backward_entry(const HsBackward* backward, const HsCall* call, HsOutcome* outcome) {
    Launcher launcher(*call, *outcome);
    const HsBackward& b = *backward;
    const HsAttention& a = b.a;
    const GradientArgs args{b, 0};
    if (kernels::traits_of(static_cast<Normaliser>(a.normaliser)).row_mean == kernels::RowMean::output) {
        const std::int64_t rows = static_cast<std::int64_t>(a.heads) * a.queries;
        launcher.run<OutputMean>((rows + OutputMean::kRows - 1) / OutputMean::kRows, args);
    }
    launch_gradients(launcher, b);
    if (b.sinks != nullptr) launcher.run<SinkGradient>(a.heads, args);
    if (b.offsets != nullptr) launcher.run<OffsetGradient>(a.heads, args);
}

}  // namespace headscope::gpu

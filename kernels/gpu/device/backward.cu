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

template <Of kOf>
void gradient(Launcher& launcher, const HsBackward& b, std::int64_t blocks, int size) {
    constexpr int kWide = 128;
    for (int column = 0; column < size; column += kWide) {
        const GradientArgs args{b, column};
        if (size - column > kWide / 2)
            launcher.run<Gradient<kOf, kWide>>(blocks, args);
        else
            launcher.run<Gradient<kOf, kWide / 2>>(blocks, args);
    }
}

}  // namespace

void attention_backward_entry(const HsBackward* backward, const HsCall* call, HsOutcome* outcome) {
    Launcher launcher(*call, *outcome);
    const HsBackward& b = *backward;
    const HsAttention& a = b.a;
    const GradientArgs args{b, 0};
    const std::int64_t query_blocks = tiles_of(a.queries) * a.heads, key_blocks = tiles_of(a.keys) * a.key_heads;
    const kernels::NormaliserTraits& traits = kernels::traits_of(static_cast<Normaliser>(a.normaliser));
    if (traits.two_runs()) {
        launcher.run<Gradient<Of::rows, 64>>(query_blocks, args);
    } else if (traits.row_mean == kernels::RowMean::output) {
        const std::int64_t rows = static_cast<std::int64_t>(a.heads) * a.queries;
        launcher.run<OutputMean>((rows + OutputMean::kRows - 1) / OutputMean::kRows, args);
    }
    if (b.query.data != nullptr) gradient<Of::query>(launcher, b, query_blocks, a.key_size);
    if (b.key.data != nullptr) gradient<Of::key>(launcher, b, key_blocks, a.key_size);
    if (b.value.data != nullptr) gradient<Of::value>(launcher, b, key_blocks, a.value_size);
    if (b.sinks != nullptr) launcher.run<SinkGradient>(a.heads, args);
    if (b.offsets != nullptr) launcher.run<OffsetGradient>(a.heads, args);
    RuleGradientArgs of_rule{b, a.rule};
    if (b.diagonals != nullptr) launcher.run<DiagonalGradient>(tiles_of(a.queries + a.keys - 1) * a.heads, of_rule);
    if (b.hidden_blocks != 0) of_rule.rule.block_size = 0;
    if (b.of_keys != nullptr) launcher.run<KeyGradient>(tiles_of(a.keys) * a.heads, of_rule);
}

}  // namespace headscope::gpu

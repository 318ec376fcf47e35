// SPDX-License-Identifier: GPL-3.0-or-later
// Gradients of attention on a GPU, one call of the plugin for each sequence.
#include <algorithm>

#include "kernels/backend.h"
#include "kernels/gpu/host/sequence.h"
#include "kernels/gpu/operators.h"
#include "kernels/normaliser.h"
#include "kernels/score_pairs.h"

namespace headscope::kernels {
namespace {

constexpr const char* kWhere = "attention backward";

/// [B, H, Lq] row constants of sequence b.
float* rows_on_device(gpu::Memory& memory, float* rows, Device device, std::int64_t b, std::int64_t count) {
    float* own = rows + b * count;
    return device == Device::gpu ? own : memory.upload(own, count);
}

/// Adds one sequence's sums, [heads] in device memory.
void add_sums(gpu::Memory& memory, const double* sums, std::vector<double>& total) {
    if (sums == nullptr) return;
    const std::vector<double> found = memory.fetch(sums, static_cast<std::int64_t>(total.size()));
    for (std::size_t h = 0; h < total.size(); ++h) total[h] += found[h];
}

void write_sums(const std::vector<double>& total, float* to) {
    if (to == nullptr) return;
    std::transform(total.begin(), total.end(), to, [](double x) { return static_cast<float>(x); });
}

}  // namespace

void attention_backward_gpu(const AttentionInput& input, const TensorView& output, const TensorView& output_gradient,
                            const SoftmaxRows& rows, const AttentionGradients& gradients) {
    const HsPlugin& library = gpu::plugin(kWhere);
    if (library.attention_backward == nullptr) gpu::refuse(kWhere);
    if (input.rule->dropout.share > 0.0) gpu::refuse("attention dropout");
    if (gradients.distance_bias != nullptr) gpu::refuse("gradient of distance biases");
    if (gradients.blocks != nullptr) gpu::refuse("gradient of visible blocks");
    const NormaliserTraits& traits = traits_of(input.rule->normaliser);
    const Device device = input.query.device;
    const auto heads = static_cast<std::size_t>(input.query.heads);
    std::vector<double> sinks(heads), offsets(heads);
    for (std::int64_t b = 0; b < input.query.batch; ++b) {
        const cpu::SequencePlan plan(input, b);
        const cpu::Sequence& s = plan.sequence();
        gpu::Memory memory(library, kWhere);
        const std::int64_t count = s.heads * s.queries;
        HsBackward back{};
        back.a = gpu::upload(memory, input, s, b);
        back.a.shift = rows_on_device(memory, rows.shift, device, b, count);
        back.a.factor = rows_on_device(memory, rows.factor, device, b, count);
        back.output = gpu::upload(memory, output, b);
        back.gradient = gpu::upload(memory, output_gradient, b);
        gpu::Result query(memory, gradients.query, device, b, s.heads, s.queries, s.key_size);
        gpu::Result key(memory, gradients.key, device, b, s.key_heads, s.keys, s.key_size);
        gpu::Result value(memory, gradients.value, device, b, s.key_heads, s.keys, s.value_size);
        back.query = query.target();
        back.key = key.target();
        back.value = value.target();
        if (traits.row_mean != RowMean::zero) back.mean = memory.zeros<float>(count);
        if (gradients.sinks != nullptr) back.sinks = memory.zeros<double>(s.heads);
        if (gradients.offsets != nullptr) {
            const SequenceBounds bounds = sequence_bounds(*input.rule, b, s.queries, s.keys);
            std::vector<double> factors;
            for (std::int64_t i = 0; i < s.queries; ++i) factors.push_back(offset_factor(*input.rule, bounds, i));
            back.offset_factors = memory.upload(factors.data(), s.queries);
            back.kept = memory.zeros<double>(count);
            back.offsets = memory.zeros<double>(s.heads);
        }
        const HsCall call = gpu::call_of(input.cancel);
        HsOutcome outcome{};
        library.attention_backward(&back, &call, &outcome);
        gpu::expect_done(outcome, kWhere);
        query.fetch();
        key.fetch();
        value.fetch();
        add_sums(memory, back.sinks, sinks);
        add_sums(memory, back.offsets, offsets);
    }
    write_sums(sinks, gradients.sinks);
    write_sums(offsets, gradients.offsets);
}

}  // namespace headscope::kernels

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

/// Adds sums by j - i, [heads, diagonals] from 1 - queries on, to the table's columns, [heads, bias_length].
void add_biases(const ScoreRule& rule, std::int64_t heads, std::int64_t queries, const std::vector<double>& diagonals,
                std::vector<double>& table) {
    const std::int64_t count = static_cast<std::int64_t>(diagonals.size()) / heads;
    for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t d = 0; d < count; ++d) {
            const std::int64_t column = d - (queries - 1) - rule.query_offset + rule.bias_origin;
            const std::int64_t inside = std::clamp<std::int64_t>(column, 0, rule.bias_length - 1);
            if (column != inside && rule.beyond_table == BeyondTable::zero) continue;
            table[static_cast<std::size_t>(h * rule.bias_length + inside)] +=
                diagonals[static_cast<std::size_t>(h * count + d)];
        }
    }
}

/// Sums of a head's keys by block.
void write_blocks(const cpu::Sequence& s, const std::vector<double>& of_keys, float* to) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
        for (std::int64_t block = 0; block < s.blocks; ++block) {
            double sum = 0.0;
            for (std::int64_t j = block * s.block_size; j < std::min((block + 1) * s.block_size, s.keys); ++j)
                sum += of_keys[static_cast<std::size_t>(h * s.keys + j)];
            to[h * s.blocks + block] = static_cast<float>(sum);
        }
    }
}

}  // namespace

void attention_backward_gpu(const AttentionInput& input, const TensorView& output, const TensorView& output_gradient,
                            const SoftmaxRows& rows, const AttentionGradients& gradients) {
    const HsPlugin& library = gpu::plugin(kWhere);
    if (library.attention_backward == nullptr) gpu::refuse(kWhere);
    const NormaliserTraits& traits = traits_of(input.rule->normaliser);
    const Device device = input.query.device;
    const auto heads = static_cast<std::size_t>(input.query.heads);
    std::vector<double> sinks(heads), offsets(heads);
    std::vector<double> biases(heads * static_cast<std::size_t>(input.rule->bias_length));
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
        gpu::note_products(library, back.a, back.gradient.type == HS_BFLOAT16);
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
        const std::int64_t diagonals = s.heads * (s.queries + s.keys - 1);
        if (gradients.distance_bias != nullptr) back.diagonals = memory.zeros<double>(diagonals);
        if (gradients.blocks != nullptr) back.of_keys = memory.zeros<double>(s.heads * s.keys);
        back.hidden_blocks = gradients.hidden_blocks ? 1 : 0;
        gpu::run_entry(library, library.attention_backward, back, input.cancel, kWhere);
        query.fetch();
        key.fetch();
        value.fetch();
        add_sums(memory, back.sinks, sinks);
        add_sums(memory, back.offsets, offsets);
        if (back.diagonals != nullptr)
            add_biases(*input.rule, s.heads, s.queries, memory.fetch(back.diagonals, diagonals), biases);
        if (back.of_keys != nullptr)
            write_blocks(s, memory.fetch(back.of_keys, s.heads * s.keys), gradients.blocks + b * s.heads * s.blocks);
    }
    write_sums(sinks, gradients.sinks);
    write_sums(offsets, gradients.offsets);
    write_sums(biases, gradients.distance_bias);
}

}  // namespace headscope::kernels

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// kernels/attention_backward.h for processors, checked before, and the pieces of work that it shares out: one key head
// of one sequence, or some tiles of its keys. A piece adds up everything itself, so thread counts change no bit.

#include <cstdint>

#include "kernels/attention_backward.h"
#include "kernels/cpu/attention/sequence.h"

namespace headscope::kernels::cpu {

void attention_forward_cpu(const AttentionInput& input, const MutableView& output, const SoftmaxRows& rows);
void attention_backward_cpu(const AttentionInput& input, const TensorView& output, const TensorView& output_gradient,
                            const SoftmaxRows& rows, const AttentionGradients& gradients);

inline constexpr std::int64_t kBackwardKeys = 192;  ///< keys of a tile: a multiple of panels and register blocks
inline constexpr std::int64_t kBackwardRows = 48;   ///< queries of a tile

/// [heads, length, size] of one sequence to write to. data null: not wanted.
struct HeadTarget {
    void* data = nullptr;
    ElementType type = ElementType::float32;
    std::int64_t head_stride = 0, row_stride = 0;
};

/// Sums over the keys of one row: of slope dA and of slope. With RowMean::kept: of slope dA and of dA, over weights
/// above 0.
struct SlopeSums {
    double products = 0.0, others = 0.0;
};

struct BackwardTask {
    const Sequence* sequence = nullptr;
    std::int64_t key_head = 0;
    std::int64_t key_first = 0, key_last = 0;  ///< key_first a multiple of kBackwardKeys
    HeadMatrix output, output_gradient;
    const float *shift = nullptr, *factor = nullptr;  ///< [heads, queries] of this sequence
    /// NormaliserTraits::two_runs: the first adds these up and writes nothing else, the second is given the means that
    /// they make. [heads, queries] of this sequence; the sums are of this task's keys (and, with the first keys, of the
    /// sink logit).
    SlopeSums* sums = nullptr;
    const float* means = nullptr;
    double* sinks =
        nullptr;  ///< [heads] d loss / d sink logit of this sequence, from the task with the first keys; null: none
    float scale = 1.0F;
    double* blocks = nullptr;  ///< adds to [heads, Sequence::blocks] d loss / d factor of each block; null: none
    bool hidden_blocks = false;
    double* relative = nullptr;  ///< adds to [heads, relative_length] d loss / d Sequence::relative, base e; null: none
    HeadTarget query, key, value;  ///< the query's has this task's share alone
    float* scratch = nullptr;
};
std::int64_t backward_scratch(const Sequence& s, std::int64_t keys);
/// Defined for each normalizer that trains() (normaliser/backward-inl.h).
template <Normaliser>
void backward_pass(const BackwardTask& task);
template <>
void backward_pass<Normaliser::softmax>(const BackwardTask& task);
template <>
void backward_pass<Normaliser::sparsemax>(const BackwardTask& task);
template <>
void backward_pass<Normaliser::taylor>(const BackwardTask& task);
template <>
void backward_pass<Normaliser::elastic>(const BackwardTask& task);
template <>
void backward_pass<Normaliser::entmax>(const BackwardTask& task);
template <>
void backward_pass<Normaliser::sigmoid>(const BackwardTask& task);

/// to (+)= from, [rows, size] of one head, float32 `from` with rows side by side.
struct AddPartsTask {
    const float* parts = nullptr;
    std::int64_t count = 0, stride = 0;  ///< how many parts, and how far they are apart
    std::int64_t rows = 0, size = 0;
    HeadTarget target;  ///< of this head
};
void add_parts(const AddPartsTask& task);

}  // namespace headscope::kernels::cpu

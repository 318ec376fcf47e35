// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Memory of one call: aligned for whole vectors, the per-sequence plan, and what the passes leave for the summary.

#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "kernels/attention.h"
#include "kernels/cpu/attention/accumulators.h"
#include "kernels/cpu/attention/sequence.h"
#include "kernels/parallel.h"

namespace headscope::kernels {
struct AttentionInput;
}

namespace headscope::kernels::cpu {

/// Floats at an address that is a multiple of 64, uninitialised.
class AlignedFloats {
public:
    AlignedFloats() = default;
    explicit AlignedFloats(std::int64_t size)
        : data_(static_cast<float*>(::operator new(static_cast<std::size_t>(size) * sizeof(float), kAlignment))) {}
    float* data() const { return data_.get(); }

private:
    static constexpr std::align_val_t kAlignment{64};
    struct Free {
        void operator()(float* p) const { ::operator delete(p, kAlignment); }
    };
    std::unique_ptr<float, Free> data_;
};

/// Aligned memory for each worker of one parallel_for, made when it is first asked for.
class Scratch {
public:
    explicit Scratch(std::int64_t floats) : floats_(floats), parts_(static_cast<std::size_t>(threads())) {}
    float* of(int worker) {
        AlignedFloats& part = parts_[static_cast<std::size_t>(worker)];
        if (part.data() == nullptr) part = AlignedFloats(floats_);
        return part.data();
    }

private:
    std::int64_t floats_;
    std::vector<AlignedFloats> parts_;
};

/// A Sequence of batch entry b with the tables that it points to.
class SequencePlan {
public:
    SequencePlan(const AttentionInput& input, std::int64_t b);
    const Sequence& sequence() const { return sequence_; }
    /// Takes K packed by pack_keys, [key_heads] blocks of head_stride floats.
    void set_packed_keys(const float* packed, std::int64_t head_stride);

private:
    void build_relative(const ScoreRule& rule);

    Sequence sequence_;
    std::vector<float> relative_, sink_logits_, offsets_;
};

/// Results of the passes over one sequence, by block of rows.
struct SequenceResults {
    std::int64_t blocks = 0, distances = 0;
    std::vector<BlockScores> scores;    ///< [heads, blocks]
    std::vector<BlockWeights> weights;  ///< [blocks, heads]
    std::vector<double> local;          ///< [blocks, heads, distances]
    std::vector<double> diversity;      ///< [blocks], or empty
};

/// Adds everything up in a fixed order and writes sequence b's part of Statistics. `minimum`: RowConstants::minimum.
void summarise(const Sequence& s, const StatisticsRequest& request, const SequenceResults& results,
               const ColumnTotals& totals, const float* minimum, std::int64_t b, Statistics& out);

}  // namespace headscope::kernels::cpu

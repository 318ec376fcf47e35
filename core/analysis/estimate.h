// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Estimates of an analysis before it runs, from the checkpoint's description alone.
//
// The file is summed over its schema (store::expected_file_bytes): within 3 % of a file of 7 tokens, 0.5 % of larger
// ones. Memory is a model of what was measured: the program with its libraries, the weights, and what a batch's rows
// need in attention, feed-forward and loss, which the allocator keeps side by side. Peak of the process with the sample
// checkpoint (4 layers, d 256, 2048 pieces) on two processors, measured / estimated, in MB:
//
//     tokens   nothing recorded   maps
//     256      176 / 179
//     2048     211 / 230          220 / 236
//     8192     370 / 405          403 / 430

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/analysis/request.h"
#include "core/base/machine/memory_room.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/load/residence.h"

namespace headscope::analysis {

/// How fast this machine is, by the last run or by its processors.
struct Rate {
    double multiplications_per_second = 0;

    /// Before anything was measured: 2e10 for each thread, as processors with AVX2 have it.
    static Rate by_threads(int threads);
    /// From a finished run: Estimate::multiplications (or the part that progress counted) and seconds. Below a tenth of
    /// a second it returns `before`.
    static Rate measured(double multiplications, double seconds, Rate before);
};

struct Estimate {
    /// Bytes of weights a second, from the disk's cache, checked and converted.
    static constexpr double read_rate = 1e9;

    double multiplications = 0;  ///< as progress counts them (plan_work)
    double read_bytes = 0;       ///< of weights
    double seconds = 0;          ///< with reading them
    double weight_bytes = 0;     ///< in memory
    double work_bytes = 0;       ///< of a batch: activations, logits, statistics, what is recorded
    double memory_bytes = 0;     ///< peak of a process that does it: program, weights, work
    double file_bytes = 0;
    double spilled_bytes = 0;  ///< of hidden states that wait on the disk meanwhile
};

/// Tokens that the model reads, those of targets too.
std::size_t token_count(const AnalysisRequest& request);

struct EstimateOptions {
    Rate rate;
    bool bfloat16 = false;  ///< --dtype
    model::Residence residence = model::Residence::float32;
    bool weights_there = false;  ///< a model that is loaded already is only counted as memory
};

/// `inspection` is the model's that `request` is for. Throws nothing of its own; works for requests that run() would
/// refuse, too. Milliseconds; any thread.
Estimate estimate(const model::Inspection& inspection, const AnalysisRequest& request, const EstimateOptions& options);

/// Throws Error(io) where the disk of `output` has no room for the file and for hidden states that wait.
void expect_disk_space(const std::filesystem::path& output, double file_bytes, double spilled_bytes);

struct MemoryOptions {
    checkpoint::LoadAs precision = checkpoint::LoadAs::float32;
    std::optional<model::Residence> residence{};  ///< empty: the first that fits
    bool weights_there = false;
};

/// Tokens of a batch (AnalysisRequest::batch_tokens), halved down to 256 until the analysis fits into `room` bytes in
/// the residence, or in any where the choice is open. A `room` of 0 is not known.
std::int64_t fitting_batch_tokens(const model::Inspection& inspection, const AnalysisRequest& request,
                                  const MemoryOptions& options, double room = own_memory_room());

/// Throws Error(memory) where this process may not take what the analysis needs (core/base/process/free_memory.h):
/// before weights are read. Returns the residence of the weights.
model::Residence expect_memory(const model::Inspection& inspection, const AnalysisRequest& request,
                               const MemoryOptions& options);

}  // namespace headscope::analysis

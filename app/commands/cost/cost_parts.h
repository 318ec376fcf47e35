// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Options of `headscope cost`, its tables of their own, and units of tables. Errors: Error, UsageError.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/progress.h"
#include "core/checkpoint/checkpoint.h"
#include "core/cost/mixer_cost.h"
#include "core/model/config.h"

namespace headscope::app::cost_command {

struct Options {
    std::string preset, config, lengths = "128,512,2048", output, device = "cpu";
    std::vector<std::string> models, mixers;
    std::int64_t batch = 0, tensor_parallel = 1, bytes = 0;  // 0: the usual
    std::int64_t prefetch = 0;
    std::int64_t length = 512, hidden = 768, rows = 50'265, bits = 128, group_bits = 10;
    double softmax_share = cost::CostSetting().softmax_share;
    std::uint64_t seed = 1;
    int threads = 0;
    bool measure = false, latency = false, variants = false, embeddings = false, json = false;
    std::vector<std::string> given;

    std::int64_t batch_or(std::int64_t usual) const { return batch > 0 ? batch : usual; }
};

/// Model of a cost: a configuration and its sizes.
struct Subject {
    std::string name;
    model::ModelConfig config;
    std::int64_t parameters = 0;
    std::string printed;  ///< parameters as a paper names the size
    std::shared_ptr<const checkpoint::Checkpoint> checkpoint;
};

/// Reads the configuration of the one model, preset or config.json that the options name.
Subject subject_of(const Options& options);

std::string flops_text(double value);
std::string bytes_text(double value);
std::string seconds_text(double value);
/// A number, or null where it is not finite.
nlohmann::json number(double value);

/// Times models (--latency).
void run_latency(const Options& options, const Cancellation& cancellation);
/// Tables 3.4 and 3.13 of the thesis: the variants of multi-head attention at the sizes of a model.
void run_variants(const Options& options);
/// Counts of the thesis's Table 2.2.
void run_embeddings(const Options& options);

}  // namespace headscope::app::cost_command

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What "Neural Attention Search Linear" claims, from what was measured (core/reproduce/claim.h).

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/reproduce/claim.h"
#include "core/reproduce/natsl/plan.h"
#include "core/store/run_record.h"

namespace headscope::reproduce::natsl {

/// Softmax fractions of a model on one text: [layers with NAtS-L][heads].
struct TokenTypes {
    std::string model, text;  ///< "natsl-hybrid", "prose"
    std::vector<std::vector<double>> fractions;
};
/// Of an analysis file.
TokenTypes read_token_types(const std::filesystem::path& analysis, const std::string& model, const std::string& text);

/// Mean softmax fraction over layers and heads at a run's first and last probe; nothing where it has none.
std::optional<std::pair<double, double>> softmax_share(const store::RunRecord& run);

struct Latency {
    double prefill = 0, decode = 0;  ///< seconds: of all tokens, of one more
    std::int64_t cache_bytes = 0;
};

struct Measured {
    std::map<std::string, std::int64_t> parameters;                  ///< by model
    std::map<std::string, std::map<std::int64_t, double>> position;  ///< perplexity by model and last position
    std::map<std::string, std::map<std::int64_t, double>> recall;    ///< accuracy by trial's name and length
    std::map<std::string, std::map<std::int64_t, Latency>> latency;  ///< by model and length
    std::vector<TokenTypes> types;
    std::map<std::string, std::pair<double, double>> softmax_share;  ///< of chunks, at the first and last probe
};

/// Whether the plan has tokens enough (a million a run) for models of this size to use their context; else what is
/// claimed of them is undecided.
bool learned(const Plan& plan);
/// Perplexity of a model in its training length, and of the last positions of the long text; NaN: not measured.
double perplexity_inside(const Plan& plan, const Measured& measured, const std::string& model);
double perplexity_beyond(const Plan& plan, const Measured& measured, const std::string& model);
/// Mean over the lengths; NaN: not measured.
double mean_recall(const Measured& measured, const std::string& trial);

std::vector<Claim> judge(const Plan& plan, const Measured& measured);

struct ReportInput : ReportFrame {
    Plan plan;
    Measured measured;
};
/// Markdown: our numbers beside the paper's, and of each claim whether it held.
std::string report_markdown(const ReportInput& input);

}  // namespace headscope::reproduce::natsl

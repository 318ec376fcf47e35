// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Interventions as a TOML file: [[intervention]] tables and the [[text]] tables that they read values from.
// Threads: plain functions. Errors: headscope::Error.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/model/edits/intervention.h"

namespace headscope::model {
class Model;
}
namespace headscope::tokenizer {
class Tokenizer;
}

namespace headscope::ask {

/// A model before its weights are read.
struct ModelDescription {
    const model::ModelConfig& config;
    const std::vector<Site>& sites;
    const tokenizer::Tokenizer* tokenizer = nullptr;  ///< null: texts are given as tokens alone
};

struct InterventionPlan {
    std::string toml;                       ///< the file's text
    std::vector<model::Intervention> list;  ///< `run` and `reference` have no values before read_values()
    struct Text {
        std::string name;
        std::vector<std::int64_t> tokens;
        std::vector<std::int64_t> target{};  ///< of an encoder-decoder: its decoder's input, the start token first
    };
    std::vector<Text> texts;
    std::vector<std::filesystem::path> files;  ///< with vectors
    /// By intervention: the texts of `run` (one) and `reference`, as indices of `texts`; empty for others.
    std::vector<std::vector<std::size_t>> sources;

    /// Runs the texts and fills in the values of `run` and `reference`.
    void read_values(model::Model& model, const Cancellation* cancellation);
};

/// Checks everything against the model. Vectors are read relative to the file's folder.
InterventionPlan read_interventions(const std::filesystem::path& path, const ModelDescription& model);
/// The same of a text; `where` names it in errors.
InterventionPlan parse_interventions(std::string_view toml, const std::string& where,
                                     const std::filesystem::path& folder, const ModelDescription& model);

/// "2-5", "-1", "0,3-4": inclusive ranges; "-3--1" are the last three.
std::vector<model::PositionRange> parse_positions(std::string_view text, const std::string& where);

}  // namespace headscope::ask

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/patch.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "app/commands/ask/ask_input.h"
#include "app/commands/ask/ask_tool.h"
#include "app/commands/options.h"
#include "core/ask/approximate.h"
#include "core/base/error.h"
#include "core/model/config.h"
#include "core/model/load/memory.h"
#include "core/model/model.h"

namespace headscope::app {
namespace ask_patch {
namespace {

class PatchTool final : public AskTool {
public:
    std::string name() const override { return "patch"; }
    std::string help() const override { return "a corrupted text's metric with values of a clean text's run"; }
    void add_options(CLI::App& command) override {
        add_list(command, "--clean", clean_texts_);
        add_list(command, "--corrupted", corrupted_texts_);
        add_list(command, "--clean-tokens", clean_tokens_);
        add_list(command, "--corrupted-tokens", corrupted_tokens_);
        add_list(command, "--corrupted-target-tokens", corrupted_targets_);
        add_tool_option(command, "--sites", sites_);
        add_tool_option(command, "--by", by_);
        add_tool_option(command, "--approximation", approximation_);
        add_tool_option(command, "--integrated-sites", integrated_sites_);
        add_tool_option(command, "--steps", steps_);
        add_tool_flag(command, "--correlation", correlation_);
        add_tool_option(command, "--align", align_);
    }
    std::string default_metric() const override { return "logit_difference"; }
    void store_options(nlohmann::json& settings) const override {
        settings["clean"] = clean_texts_;
        settings["corrupted"] = corrupted_texts_;
        settings["clean_tokens"] = clean_tokens_;
        settings["corrupted_tokens"] = corrupted_tokens_;
        settings["corrupted_target_tokens"] = corrupted_targets_;
        settings["sites"] = sites_;
        settings["by"] = by_;
        settings["align"] = align_;
        settings["approximation"] = approximation_;
        settings["integrated_sites"] = integrated_sites_;
        settings["steps"] = steps_;
        settings["correlation"] = correlation_;
    }
    std::vector<store::SequenceTokens> read(const AskOptions&, const AskTexts& texts) override {
        const auto expect = [](const char* option, bool given) {
            if (!given)
                throw Error(ErrorCode::usage, option, "expected texts, here or as " + std::string(option) + "-tokens",
                            "found none");
        };
        expect("--clean", !clean_texts_.empty() || !clean_tokens_.empty());
        expect("--corrupted", !corrupted_texts_.empty() || !corrupted_tokens_.empty());
        clean_ = texts(clean_texts_, clean_tokens_, {}, {});
        return texts(corrupted_texts_, corrupted_tokens_, {}, {{}, corrupted_targets_, "--corrupted-target-tokens"});
    }
    double extra_bytes(const model::ModelConfig& config, std::int64_t tokens) const override {
        const std::vector<model::Point> points = points_of("--sites", sites_);
        const bool matrices = std::any_of(points.begin(), points.end(), model::is_matrix);
        const auto length = static_cast<double>(tokens), layers = static_cast<double>(config.all_layers());
        const double sweep = matrices ? matrix_edit_bytes(config, tokens) : 0;
        if (approximation_.empty()) return sweep;
        const double kept = matrices ? layers * model::edited_matrix_bytes(config, 1, length) : 0;
        return std::max(sweep, model::gradient_bytes(config, length) + kept);
    }
    void run(AskRun& run) override {
        check_approximation();
        ask::PatchOptions options;
        options.points = points_of("--sites", sites_);
        options.metric = metric_of(run.options, run.tokenizer);
        options.by = static_cast<ask::SweepBy>(choice_of("--by", by_));
        options.alignment = static_cast<ask::Alignment>(choice_of("--align", align_));
        options.editor = run.editor;
        options.saved = run.saved;
        const ask::ApproximateOptions choice = approximations();
        if (!approximation_.empty()) ask::check_approximations(run.model, options, choice);
        ask::run_patch(run.model, clean_, options, run.record, run.progress, run.cancellation);
        if (!approximation_.empty())
            ask::run_approximations(run.model, clean_, options, choice, run.record, run.progress, run.cancellation);
    }
    std::string main_table(const store::AskRecord& record) const override { return record.tables.at(2).path; }

private:
    bool approximates_by(const std::string& name) const {
        return std::find(approximation_.begin(), approximation_.end(), name) != approximation_.end();
    }

    /// Before the sweep, which may take long.
    void check_approximation() const {
        if (approximates_by("integrated") != !integrated_sites_.empty())
            throw Error(ErrorCode::usage, "--integrated-sites", "expected points with --approximation integrated alone",
                        integrated_sites_.empty() ? "found none" : "found some");
        if (correlation_ && approximation_.empty())
            throw Error(ErrorCode::usage, "--correlation", "expected --approximation, too", "found none");
    }

    ask::ApproximateOptions approximations() const {
        ask::ApproximateOptions choice;
        choice.attribution = approximates_by("attribution");
        choice.integrated = points_of("--integrated-sites", integrated_sites_);
        choice.steps = steps_;
        choice.correlation = correlation_;
        return choice;
    }

    std::vector<std::string> clean_texts_, corrupted_texts_, clean_tokens_, corrupted_tokens_, corrupted_targets_;
    std::string sites_, by_, align_;
    std::vector<std::string> approximation_;
    std::string integrated_sites_;
    std::int64_t steps_ = 0;
    bool correlation_ = false;
    std::vector<store::SequenceTokens> clean_;
};

}  // namespace
}  // namespace ask_patch

std::unique_ptr<AskTool> patch_tool() {
    return std::make_unique<ask_patch::PatchTool>();
}

}  // namespace headscope::app

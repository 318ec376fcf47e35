// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/ablate.h"

#include <nlohmann/json.hpp>

#include "app/commands/ask/ask_input.h"
#include "app/commands/ask/ask_tool.h"
#include "app/commands/options.h"
#include "core/base/io/output_file.h"
#include "core/model/load/memory.h"
#include "core/model/model.h"

namespace headscope::app {
namespace ask_ablate {
namespace {

class AblateTool final : public AskTool {
public:
    std::string name() const override { return "ablate"; }
    std::string help() const override { return "a metric with each head, attention and feed-forward replaced"; }
    void add_options(CLI::App& command) override {
        add_tool_flag(command, "--importance", importance_);
        add_tool_option(command, "--rank", rank_);
        add_tool_option(command, "--how", how_);
    }
    std::string default_metric() const override { return "loss"; }
    void store_options(nlohmann::json& settings) const override {
        settings["how"] = how_;
        settings["importance"] = importance_;
    }
    std::vector<std::filesystem::path> outputs() const override {
        return rank_.empty() ? std::vector<std::filesystem::path>{} : std::vector<std::filesystem::path>{rank_};
    }
    double extra_bytes(const model::ModelConfig& config, std::int64_t tokens) const override {
        return importance_ ? model::gradient_bytes(config, static_cast<double>(tokens)) : 0;
    }
    void run(AskRun& run) override {
        ask::AblateOptions options;
        options.how = static_cast<ask::AblateBy>(choice_of("--how", how_));
        options.metric = metric_of(run.options, run.tokenizer);
        options.reference = run.reference;
        options.importance = importance_;
        options.editor = run.editor;
        options.saved = run.saved;
        ask::run_ablate(run.model, options, run.record, run.progress, run.cancellation);
        if (!rank_.empty()) write_whole_file(rank_, ask::ranked_heads_csv(run.record), "table", run.inputs);
    }
    std::string main_table(const store::AskRecord&) const override { return "/ablate/head"; }

private:
    std::string how_;
    bool importance_ = false;
    std::string rank_;
};

}  // namespace
}  // namespace ask_ablate

std::unique_ptr<AskTool> ablate_tool() {
    return std::make_unique<ask_ablate::AblateTool>();
}

}  // namespace headscope::app

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/knockout.h"

#include <nlohmann/json.hpp>

#include "app/commands/ask/ask_input.h"
#include "app/commands/ask/ask_tool.h"
#include "app/commands/options.h"
#include "core/ask/edits/intervention_file.h"
#include "core/base/error.h"
#include "core/model/model.h"

namespace headscope::app {
namespace ask_knockout {
namespace {

class KnockoutTool final : public AskTool {
public:
    std::string name() const override { return "knockout"; }
    std::string help() const override { return "a metric with attention from --queries to --keys forbidden"; }
    void add_options(CLI::App& command) override {
        add_tool_option(command, "--queries", queries_);
        add_tool_option(command, "--keys", keys_);
        add_tool_option(command, "--attention", attention_);
    }
    std::string default_metric() const override { return "loss"; }
    void store_options(nlohmann::json& settings) const override {
        settings["queries"] = queries_;
        settings["keys"] = keys_;
        settings["attention"] = attention_;
    }
    double extra_bytes(const model::ModelConfig& config, std::int64_t tokens) const override {
        return matrix_edit_bytes(config, tokens);
    }
    void run(AskRun& run) override {
        windows_ = run.options.window > 0;
        ask::KnockoutOptions options;
        options.queries = positions("--queries", queries_);
        options.keys = positions("--keys", keys_);
        options.heads = analysis::parse_heads("--heads", run.options.heads, run.model.sites());
        options.attention = static_cast<ask::KnockoutIn>(choice_of("--attention", attention_));
        options.window = run.options.window;
        options.metric = metric_of(run.options, run.tokenizer);
        options.editor = run.editor;
        options.saved = run.saved;
        ask::run_knockout(run.model, options, run.record, run.progress, run.cancellation);
    }
    std::string main_table(const store::AskRecord&) const override {
        return windows_ ? "/knockout/by_layer" : "/knockout/value";
    }

private:
    static std::vector<model::PositionRange> positions(const std::string& option, const std::string& text) {
        if (text.empty()) throw Error(ErrorCode::usage, option, "expected positions for ask knockout", "found none");
        return ask::parse_positions(text, option);
    }

    std::string queries_, keys_, attention_;
    bool windows_ = false;
};

}  // namespace
}  // namespace ask_knockout

std::unique_ptr<AskTool> knockout_tool() {
    return std::make_unique<ask_knockout::KnockoutTool>();
}

}  // namespace headscope::app

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/sinks.h"

#include <nlohmann/json.hpp>

#include "app/commands/ask/ask_input.h"
#include "app/commands/ask/ask_tool.h"
#include "app/commands/options.h"
#include "core/model/model.h"

namespace headscope::app {
namespace ask_sinks {
namespace {

class SinksTool final : public AskTool {
public:
    std::string name() const override { return "sinks"; }
    std::string help() const override { return "attention sinks, massive activations and norms of values"; }
    void add_options(CLI::App& command) override { add_tool_option(command, "--epsilon", epsilon_); }
    void store_options(nlohmann::json& settings) const override { settings["epsilon"] = epsilon_; }
    void run(AskRun& run) override {
        const ask::SinksOptions options{epsilon_, run.editor, run.saved};
        ask::run_sinks(run.model, options, run.record, run.progress, run.cancellation);
    }
    std::string main_table(const store::AskRecord&) const override { return "/sinks/rate_by_site"; }

private:
    double epsilon_ = 0;
};

}  // namespace
}  // namespace ask_sinks

std::unique_ptr<AskTool> sinks_tool() {
    return std::make_unique<ask_sinks::SinksTool>();
}

}  // namespace headscope::app

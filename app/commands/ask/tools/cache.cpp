// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/cache/cache.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "app/commands/ask/ask_input.h"
#include "app/commands/ask/ask_tool.h"
#include "app/commands/options.h"
#include "core/base/error.h"
#include "core/model/model.h"

namespace headscope::app {
namespace ask_cache {
namespace {

using ask::cache::Scorer;

class CacheTool final : public AskTool {
public:
    std::string name() const override { return "cache"; }
    std::string help() const override { return "keys that a smaller key-value cache keeps, and the outputs' error"; }
    void add_options(CLI::App& command) override {
        add_tool_option(command, "--context", context_);
        add_tool_option(command, "--scorers", scorers_);
        add_tool_option(command, "--ratios", ratios_)->delimiter(',');
        add_tool_option(command, "--kernel", kernel_);
        add_tool_option(command, "--sink", sink_);
        add_tool_option(command, "--future", future_);
    }
    void store_options(nlohmann::json& settings) const override {
        settings["context"] = context_;
        settings["scorers"] = scorers_;
        settings["ratios"] = ratios_;
        settings["kernel"] = kernel_;
        settings["sink"] = sink_;
        settings["future"] = future_;
    }
    void run(AskRun& run) override {
        ask::cache::CacheOptions options;
        for (const std::string& one : scorers_) {
            const auto scorer = static_cast<Scorer>(choice_of("--scorers", one));
            if (std::find(options.scorers.begin(), options.scorers.end(), scorer) != options.scorers.end())
                throw Error(ErrorCode::usage, "--scorers", "expected each scorer once", "found " + one + " twice");
            options.scorers.push_back(scorer);
        }
        options.ratios = ratios_;
        options.scoring.context = context_;
        if (run.options.window > 0) options.scoring.window = run.options.window;
        options.scoring.kernel = kernel_;
        options.scoring.sink = sink_;
        options.future = future_;
        options.editor = run.editor;
        options.saved = run.saved;
        ask::cache::run_cache(run.model, options, run.record, run.progress, run.cancellation);
    }
    std::string main_table(const store::AskRecord&) const override { return "/cache/" + scorers_.front() + "/error"; }

private:
    std::int64_t context_ = 0, kernel_ = 0, sink_ = 0, future_ = 0;
    std::vector<std::string> scorers_;
    std::vector<double> ratios_;
};

}  // namespace
}  // namespace ask_cache

std::unique_ptr<AskTool> cache_tool() {
    return std::make_unique<ask_cache::CacheTool>();
}

}  // namespace headscope::app

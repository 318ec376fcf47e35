// SPDX-License-Identifier: GPL-3.0-or-later
#include <nlohmann/json.hpp>

#include "app/commands/ask/ask_input.h"
#include "app/commands/ask/ask_tool.h"
#include "app/commands/options.h"
#include "core/analysis/input.h"
#include "core/ask/generation.h"
#include "core/ask/settings.h"
#include "core/base/error.h"
#include "core/model/model.h"

namespace headscope::app {
namespace ask_generate {
namespace {

class GenerateTool final : public AskTool {
public:
    std::string name() const override { return "generate"; }
    std::string help() const override {
        return "a continuation with the likeliest tokens and every head's row by step";
    }
    void add_options(CLI::App& command) override {
        add_tool_option(command, "--temperature", own_.temperature);
        add_tool_option(command, "--replace", own_.replaced)->delimiter(',');
        add_tool_option(command, "--record", own_.record);
    }
    void store_options(nlohmann::json& settings) const override { own_.store(settings); }
    void run(AskRun& run) override {
        ask::GenerationOptions options;
        if (run.options.generate > 0) options.tokens = run.options.generate;
        options.top = run.options.top;
        options.temperature = own_.temperature;
        options.seed = static_cast<std::uint64_t>(run.options.seed);
        options.maps = !own_.record.empty();
        options.end_tokens = analysis::ending_tokens(*run.checkpoint, run.tokenizer);
        options.editor = run.editor;
        options.saved = run.saved;
        for (const std::string& one : own_.replaced) {
            const std::size_t sign = one.find('=');
            if (sign == std::string::npos)
                throw Error(ErrorCode::usage, "--replace", "expected STEP=TOKEN", "found " + one);
            const auto step = parse_tokens("--replace", one.substr(0, sign), nullptr);
            const auto token = parse_tokens("--replace", one.substr(sign + 1), ask::writer_of(run.tokenizer));
            if (step.size() != 1 || token.size() != 1)
                throw Error(ErrorCode::usage, "--replace", "expected STEP=TOKEN", "found " + one);
            if (!options.replaced.emplace(step.front(), token.front()).second)
                throw Error(ErrorCode::usage, "--replace", "expected each step once",
                            "found step " + std::to_string(step.front()) + " twice");
        }
        ask::run_generation(run.model, options, run.record, run.progress, run.cancellation);
    }
    std::string main_table(const store::AskRecord&) const override { return "/generate/top_probability"; }

private:
    ask::GenerateChoice own_;
};

}  // namespace
}  // namespace ask_generate

std::unique_ptr<AskTool> generate_tool() {
    return std::make_unique<ask_generate::GenerateTool>();
}

}  // namespace headscope::app

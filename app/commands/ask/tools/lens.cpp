// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/lens.h"

#include <nlohmann/json.hpp>

#include "app/commands/ask/ask_input.h"
#include "app/commands/ask/ask_tool.h"
#include "app/commands/options.h"
#include "core/model/model.h"

namespace headscope::app {
namespace ask_lens {
namespace {

class LensTool final : public AskTool {
public:
    std::string name() const override { return "lens"; }
    std::string help() const override { return "logit lens: the distribution that each layer's stream would give"; }
    std::vector<std::string> reads() const override {
        return joined_options(ask_text_options(), {"--target", "--top"});
    }
    void add_options(CLI::App& command) override {
        add_option(command, "--target", target_, "lens: next (the text's next token), or tokens");
        add_option(command, "--top", top_, "lens: likeliest tokens that are kept")
            ->check(in_range<std::int64_t>(1, 1000));
    }
    void store_options(nlohmann::json& settings) const override {
        settings["target"] = target_;
        settings["top"] = top_;
    }
    void run(AskRun& run) override {
        ask::LensOptions options{{}, top_, run.editor, run.saved};
        if (target_ != "next") options.target = parse_tokens("--target", target_, run.tokenizer);
        ask::run_lens(run.model, options, run.record, run.progress, run.cancellation);
    }
    std::string main_table(const store::AskRecord&) const override { return "/lens/log_probability"; }

private:
    std::string target_ = "next";
    std::int64_t top_ = 5;
};

}  // namespace
}  // namespace ask_lens

std::unique_ptr<AskTool> lens_tool() {
    return std::make_unique<ask_lens::LensTool>();
}

}  // namespace headscope::app

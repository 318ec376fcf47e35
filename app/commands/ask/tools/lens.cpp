// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/lens.h"

#include <optional>

#include <nlohmann/json.hpp>

#include "app/commands/ask/ask_input.h"
#include "app/commands/ask/ask_tool.h"
#include "app/commands/options.h"
#include "core/base/error.h"
#include "core/model/model.h"

namespace headscope::app {
namespace ask_lens {
namespace {

class LensTool final : public AskTool {
public:
    std::string name() const override { return "lens"; }
    std::string help() const override {
        return "logit, tuned or Jacobian lens: the distribution of tokens at each layer";
    }
    void add_options(CLI::App& command) override {
        add_tool_option(command, "--target", target_);
        add_tool_option(command, "--kind", kind_);
        add_tool_option(command, "--lens-file", file_);
    }
    void store_options(nlohmann::json& settings) const override {
        settings["target"] = target_;
        settings["kind"] = kind_;
        settings["lens_file"] = file_;
    }
    void run(AskRun& run) override {
        const auto kind = static_cast<ask::LensKind>(choice_of("--kind", kind_));
        if ((kind == ask::LensKind::logit) != file_.empty())
            throw Error(
                ErrorCode::usage, "--lens-file",
                file_.empty() ? "expected a file with --kind " + kind_ : "expected --kind tuned or jacobian, too",
                file_.empty() ? "found none" : "found --kind logit");
        std::optional<ask::LensFile> maps;
        if (!file_.empty()) maps.emplace(file_, kind, run.model.config().hidden, run.model.config().layers);
        ask::LensOptions options{{}, run.options.top, maps ? &*maps : nullptr, run.editor, run.saved};
        if (target_ != "next") options.target = parse_tokens("--target", target_, ask::writer_of(run.tokenizer));
        ask::run_lens(run.model, options, run.record, run.progress, run.cancellation);
    }
    std::vector<std::filesystem::path> inputs() const override {
        return file_.empty() ? std::vector<std::filesystem::path>() : std::vector<std::filesystem::path>{file_};
    }
    std::string main_table(const store::AskRecord&) const override { return "/lens/log_probability"; }

private:
    std::string target_, kind_, file_;
};

}  // namespace
}  // namespace ask_lens

std::unique_ptr<AskTool> lens_tool() {
    return std::make_unique<ask_lens::LensTool>();
}

}  // namespace headscope::app

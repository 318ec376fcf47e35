// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/attribution.h"

#include "app/commands/ask/ask_input.h"
#include "app/commands/ask/ask_tool.h"
#include "core/base/error.h"
#include "core/model/model.h"

namespace headscope::app {
namespace ask_attribution {
namespace {

class AttributionTool final : public AskTool {
public:
    std::string name() const override { return "attribution"; }
    std::string help() const override { return "direct logit attribution: terms of all parts that sum to a logit"; }
    void run(AskRun& run) override {
        const ask::Metric choice = metric_of(run.options, run.tokenizer);
        if (choice.all_positions)
            throw Error(ErrorCode::usage, "--position", "expected an index for ask attribution", "found all");
        const ask::AttributionOptions options{choice.answer, choice.against, choice.position, run.editor, run.saved};
        ask::run_attribution(run.model, options, run.record, run.progress, run.cancellation);
    }
    std::vector<store::SequenceTokens> read(const AskOptions& options, const AskTexts& texts) override {
        if (options.job.dtype != "float32")
            throw Error(ErrorCode::usage, "--dtype",
                        "expected float32 for ask attribution, whose terms sum to the logit within 1e-4",
                        "found " + options.job.dtype);
        return AskTool::read(options, texts);
    }
    std::string main_table(const store::AskRecord&) const override { return "/attribution/head"; }
};

}  // namespace
}  // namespace ask_attribution

std::unique_ptr<AskTool> attribution_tool() {
    return std::make_unique<ask_attribution::AttributionTool>();
}

}  // namespace headscope::app

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/series.h"

#include <nlohmann/json.hpp>

#include "app/commands/ask/ask_input.h"
#include "app/commands/ask/ask_tool.h"
#include "core/base/error.h"
#include "core/model/model.h"

namespace headscope::app {
namespace ask_series {
namespace {

class SeriesTool final : public AskTool {
public:
    std::string name() const override { return "series"; }
    std::string help() const override { return "indicators and loss of several checkpoints of one model"; }
    bool takes_models() const override { return true; }
    void run(AskRun& run) override {
        ask::SeriesOptions options;
        options.models = run.options.models;
        options.load = run.load_other;
        options.interventions = &run.interventions;
        options.scratch = run.options.output + ".part.headscope.h5";
        options.saved = run.saved;
        ask::run_series(run.model, options, run.record, run.progress, run.cancellation);
    }
    std::string main_table(const store::AskRecord&) const override { return "/series/loss"; }
};

}  // namespace
}  // namespace ask_series

std::unique_ptr<AskTool> series_tool() {
    return std::make_unique<ask_series::SeriesTool>();
}

}  // namespace headscope::app

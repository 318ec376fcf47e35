// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/circuits/circuits.h"

#include <nlohmann/json.hpp>

#include "app/commands/ask/ask_input.h"
#include "app/commands/ask/ask_tool.h"
#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/options.h"
#include "core/base/error.h"
#include "core/model/model.h"

namespace headscope::app {
namespace ask_circuits {
namespace {

class CircuitsTool final : public AskTool {
public:
    std::string name() const override { return "circuits"; }
    std::string help() const override {
        return "spectra of the heads' QK and OV products, copying, composition, token pairs; needs no text";
    }
    void add_options(CLI::App& command) override {
        add_tool_option(command, "--norm", norm_);
        add_tool_option(command, "--pairs", pairs_);
    }
    void store_options(nlohmann::json& settings) const override {
        settings["norm"] = norm_;
        settings["pairs"] = pairs_;
    }
    std::vector<store::SequenceTokens> read(const AskOptions&, const AskTexts&) override { return {}; }
    void run(AskRun& run) override {
        if (run.editor)
            throw Error(ErrorCode::usage, "--interventions", "expected none for ask circuits, which runs no text",
                        "found some");
        ask::circuits::CircuitsOptions options;
        options.fold = norm_ == "fold";
        options.pairs = pairs_;
        options.heads = analysis::parse_heads("--heads", run.options.heads, run.model.sites());
        options.saved = run.saved;
        if (!options.heads.empty() && pairs_ == 0)
            throw Error(ErrorCode::usage, "--heads", "expected --pairs, too", "found none");
        ask::circuits::run_circuits(run.model, options, run.record, run.progress, run.cancellation);
        if (!options.heads.empty()) print_pairs(run, options.heads);
    }
    void check_given(const std::vector<std::string>& given) const override {
        for (const std::string& name : given)
            if (name == "--bos" || name == "--length")
                throw UsageError(name + " has no effect on ask circuits, which reads no text");
    }
    std::string main_table(const store::AskRecord& record) const override {
        const char* copying = "/circuits/copying_score";
        return record.find(copying) ? copying : "/circuits/ov_eigenvalue_score";
    }

private:
    /// The pairs of the chosen heads as text.
    void print_pairs(const AskRun& run, const std::vector<analysis::HeadIndex>& heads) const {
        std::vector<std::vector<std::string>> rows;
        const auto token = [&](double id) {
            const auto number = static_cast<std::int32_t>(id);
            const bool known = run.tokenizer && number < run.tokenizer->vocabulary_size();
            return known ? "\"" + escaped(run.tokenizer->surface(number)) + "\"" : "#" + std::to_string(number);
        };
        const std::int64_t most = run.record.size_of("/head");
        for (const analysis::HeadIndex& one : heads)
            for (const std::string which : {"qk", "ov"})
                for (std::int64_t k = 0; k < pairs_; ++k) {
                    const auto cell = static_cast<std::size_t>((one.site * most + one.head) * pairs_ + k);
                    const auto& tokens = run.record.table("/circuits/" + which + "_top_pairs").values;
                    const double value = run.record.table("/circuits/" + which + "_top_pair_values").values[cell];
                    if (!(tokens[2 * cell] >= 0)) continue;
                    rows.push_back({analysis::head_name(one.site, one.head, run.model.sites()), which,
                                    token(tokens[2 * cell]), token(tokens[2 * cell + 1]), std::to_string(value)});
                }
        finish_progress_line();
        print_made_text(format_table({"head", "product", "from", "to", "value"}, rows));
    }

    std::string norm_;
    std::int64_t pairs_ = 0;
};

}  // namespace
}  // namespace ask_circuits

std::unique_ptr<AskTool> circuits_tool() {
    return std::make_unique<ask_circuits::CircuitsTool>();
}

}  // namespace headscope::app

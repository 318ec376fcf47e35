// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/kinds.h"

#include <algorithm>
#include <memory>

#include <nlohmann/json.hpp>

#include "app/commands/ask/ask_input.h"
#include "app/commands/ask/ask_tool.h"
#include "app/commands/context.h"
#include "app/commands/options.h"
#include "core/analysis/input.h"
#include "core/ask/edits/intervention_file.h"
#include "core/ask/token_list.h"
#include "core/base/error.h"
#include "core/model/model.h"

namespace headscope::app {
namespace ask_kinds {
namespace {

constexpr std::int64_t kDrawnAlone = 4;  // texts that are drawn where none are given

class KindsTool final : public AskTool {
public:
    std::string name() const override { return "kinds"; }
    std::string help() const override {
        return "scores of previous-token, duplicate-token, induction, self and retrieval heads";
    }
    void add_options(CLI::App& command) override {
        add_tool_option(command, "--drawn", drawn_);
        add_tool_option(command, "--half", half_);
        add_tool_flag(command, "--exclude-first", options_.exclude_first);
        add_tool_flag(command, "--exclude-current", options_.exclude_current);
        add_tool_option(command, "--needle", needle_);
    }
    void check_given(const std::vector<std::string>& given) const override {
        const auto has = [&](const char* name) { return std::find(given.begin(), given.end(), name) != given.end(); };
        const bool reads = has("--text") || has("--file") || has("--tokens");
        const bool draws = drawn_ < 0 ? !reads : drawn_ > 0;
        for (const char* name : {"--target-text", "--target-tokens"})
            if (!reads && has(name))
                throw UsageError(std::string(name) + " needs a text, too: drawn texts have drawn decoder inputs");
        for (const char* name : {"--half", "--seed"})
            if (!draws && has(name)) throw UsageError(std::string(name) + " needs --drawn N, too: no text is drawn");
    }
    void store_options(nlohmann::json& settings) const override {
        settings["drawn"] = drawn_;
        settings["half"] = half_;
        settings["exclude_first"] = options_.exclude_first;
        settings["exclude_current"] = options_.exclude_current;
        settings["needle"] = needle_;
    }
    std::vector<store::SequenceTokens> read(const AskOptions& options, const AskTexts& texts) override {
        seed_ = static_cast<std::uint64_t>(options.seed);
        const analysis::AnalysisJob& job = options.job;
        if (job.texts.empty() && job.tokens.empty() && job.files.empty()) {
            if (drawn_ < 0) drawn_ = kDrawnAlone;
            return {};
        }
        return AskTool::read(options, texts);
    }
    std::vector<store::SequenceTokens> make(const AskMaking& from) const override {
        const model::ModelConfig& config = from.config;
        const std::int64_t count = std::max<std::int64_t>(0, drawn_);
        const std::int64_t vocabulary = config.encoder ? config.encoder->ids() : config.ids();
        std::optional<std::int32_t> first;
        if (from.tokenizer) first = analysis::beginning_token(from.checkpoint, *from.tokenizer);
        std::vector<store::SequenceTokens> made;
        for (const auto& ids : ask::repeated_texts(count, half_, vocabulary, first, seed_))
            made.push_back(drawn_text(ids, from.tokenizer));
        if (!config.encoder) return made;
        // The decoder reads other draws, behind its start token.
        std::optional<std::int32_t> start;
        if (config.decoder_start >= 0) start = static_cast<std::int32_t>(config.decoder_start);
        const auto targets = ask::repeated_texts(2 * count, half_, config.ids(), start, seed_);
        const tokenizer::Tokenizer* const words = ask::writer_of(from.tokenizer);
        for (std::size_t n = 0; n < made.size(); ++n)
            made[n].target = std::make_shared<const store::SequenceTokens>(drawn_text(targets[made.size() + n], words));
        return made;
    }
    void run(AskRun& run) override {
        if (!needle_.empty()) {
            const auto ranges = ask::parse_positions(needle_, "--needle");
            if (ranges.size() != 1)
                throw Error(ErrorCode::usage, "--needle", "expected one range of positions",
                            "found " + std::to_string(ranges.size()));
            options_.needle = ranges.front();
        } else if (run.options.generate > 0) {
            throw Error(ErrorCode::usage, "--generate", "expected --needle, too", "found none");
        }
        options_.generate = run.options.generate;
        options_.editor = run.editor;
        options_.saved = run.saved;
        ask::run_kinds(run.model, options_, run.record, run.progress, run.cancellation);
    }
    std::string main_table(const store::AskRecord&) const override { return "/kinds/induction"; }

private:
    static store::SequenceTokens drawn_text(const std::vector<std::int32_t>& ids, const tokenizer::Tokenizer* words) {
        store::SequenceTokens text;
        text.ids = ids;
        for (const std::int32_t id : ids) {
            const bool known = words && id < words->vocabulary_size();
            text.pieces.push_back(known ? words->surface(id) : std::to_string(id));
        }
        return text;
    }

    std::int64_t drawn_ = -1, half_ = 0;  ///< drawn_ -1: not given
    std::uint64_t seed_ = 0;
    std::string needle_;
    ask::KindsOptions options_;
};

}  // namespace
}  // namespace ask_kinds

std::unique_ptr<AskTool> kinds_tool() {
    return std::make_unique<ask_kinds::KindsTool>();
}

}  // namespace headscope::app

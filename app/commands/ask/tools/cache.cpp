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

constexpr std::int64_t kMostTokens = 1 << 24;

std::vector<std::string> scorer_names() {
    std::vector<std::string> names;
    for (std::int64_t k = 0; k < ask::cache::kScorers; ++k)
        names.emplace_back(ask::cache::name(static_cast<Scorer>(k)));
    return names;
}

class CacheTool final : public AskTool {
public:
    std::string name() const override { return "cache"; }
    std::string help() const override { return "keys that a smaller key-value cache keeps, and the outputs' error"; }
    std::vector<std::string> reads() const override {
        return joined_options(ask_text_options(),
                              {"--context", "--scorers", "--ratios", "--window", "--kernel", "--sink", "--future"});
    }
    void add_options(CLI::App& command) override {
        add_option(command, "--context", context_, "cache: the first N tokens, whose keys are scored")
            ->check(in_range<std::int64_t>(1, kMostTokens));
        add_option(command, "--scorers", scorers_,
                   "cache: h2o, snapkv, tova, streaming_llm, key_norm, key_difference, expected_attention")
            ->delimiter(',')
            ->check(one_of(scorer_names()));
        add_option(command, "--ratios", ratios_, "cache: shares of the keys that are removed")->delimiter(',');
        add_option(command, "--kernel", kernel_, "cache: snapkv averages scores over N keys, an odd number")
            ->check(in_range<std::int64_t>(1, kMostTokens));
        add_option(command, "--sink", sink_, "cache: first keys that streaming_llm and expected_attention keep")
            ->check(in_range<std::int64_t>(0, kMostTokens));
        add_option(command, "--future", future_, "cache: later positions that expected_attention averages over")
            ->check(in_range<std::int64_t>(1, 1 << 16));
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
        const std::vector<std::string> names = scorer_names();
        for (const std::string& one : scorers_) {
            const auto scorer = static_cast<Scorer>(choice_of(names, one));
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
    std::int64_t context_ = 0, kernel_ = 5, sink_ = 4, future_ = 512;
    std::vector<std::string> scorers_{"h2o", "tova", "streaming_llm", "key_norm", "key_difference"};
    std::vector<double> ratios_{0.25, 0.5, 0.75};
};

}  // namespace
}  // namespace ask_cache

std::unique_ptr<AskTool> cache_tool() {
    return std::make_unique<ask_cache::CacheTool>();
}

}  // namespace headscope::app

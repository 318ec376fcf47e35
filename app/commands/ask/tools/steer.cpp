// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/steer.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "app/commands/analyze/layer_list.h"
#include "app/commands/ask/ask_input.h"
#include "app/commands/ask/ask_tool.h"
#include "app/commands/console.h"
#include "app/commands/options.h"
#include "core/ask/edits/stored_vector.h"
#include "core/base/error.h"
#include "core/base/process/os_error.h"
#include "core/model/model.h"

namespace headscope::app {
namespace ask_steer {
namespace {

class SteerTool final : public AskTool {
public:
    std::string name() const override { return "steer"; }
    std::string help() const override {
        return "a metric with the difference of two sets of texts added to a layer's output";
    }
    void add_options(CLI::App& command) override {
        add_list(command, "--positive", positive_texts_);
        add_list(command, "--negative", negative_texts_);
        add_list(command, "--positive-tokens", positive_tokens_);
        add_list(command, "--negative-tokens", negative_tokens_);
        add_tool_option(command, "--at", at_);
        add_tool_option(command, "--factors", factors_);
        add_tool_option(command, "--vector", vector_);
        add_tool_option(command, "--save-vector", saved_);
    }
    std::string default_metric() const override { return "loss"; }
    void store_options(nlohmann::json& settings) const override {
        settings["positive"] = positive_texts_;
        settings["negative"] = negative_texts_;
        settings["positive_tokens"] = positive_tokens_;
        settings["negative_tokens"] = negative_tokens_;
        settings["at"] = at_;
        settings["factors"] = factors_;
        settings["vector"] = vector_;
    }
    std::vector<store::SequenceTokens> read(const AskOptions& options, const AskTexts& texts) override {
        if (!positive_texts_.empty() || !positive_tokens_.empty())
            options_.positive = texts(positive_texts_, positive_tokens_, {}, {});
        if (!negative_texts_.empty() || !negative_tokens_.empty())
            options_.negative = texts(negative_texts_, negative_tokens_, {}, {});
        return AskTool::read(options, texts);
    }
    std::vector<std::filesystem::path> inputs() const override {
        return vector_.empty() ? std::vector<std::filesystem::path>{} : std::vector<std::filesystem::path>{vector_};
    }
    std::vector<std::filesystem::path> outputs() const override {
        return saved_.empty() ? std::vector<std::filesystem::path>{} : std::vector<std::filesystem::path>{saved_};
    }
    void run(AskRun& run) override {
        // llama.cpp numbers the layers of one stack.
        if (run.model.config().encoder && !(vector_.empty() && saved_.empty()))
            throw Error(ErrorCode::unsupported, vector_.empty() ? "--save-vector" : "--vector",
                        "expected a model of one stack", "found an encoder-decoder");
        if (!vector_.empty()) {
            const ask::StoredVectors stored = ask::read_vectors(vector_, "");
            if (stored.one.defined())
                throw Error(ErrorCode::usage, "--vector", "expected a control vector with a direction per layer",
                            "found one tensor");
            options_.vectors = stored.by_layer;
        }
        options_.at = static_cast<ask::SteerAt>(choice_of("--at", at_));
        options_.factors = factors();
        if (!run.options.job.layers.empty())
            for (const int layer : parse_layers("--layers", run.options.job.layers)) options_.layers.push_back(layer);
        options_.metric = metric_of(run.options, run.tokenizer);
        options_.editor = run.editor;
        options_.saved = run.saved;
        ask::run_steer(run.model, options_, run.record, run.progress, run.cancellation);
        if (!saved_.empty()) save(run);
    }
    std::string main_table(const store::AskRecord&) const override { return "/steer/value"; }

private:
    std::vector<double> factors() const {
        std::vector<double> found;
        for (std::size_t at = 0; at <= factors_.size();) {
            const std::size_t end = std::min(factors_.find(',', at), factors_.size());
            double value = 0;
            const char* const last = factors_.data() + end;
            const auto [stop, error] = std::from_chars(factors_.data() + at, last, value);
            if (error != std::errc() || stop != last || !std::isfinite(value))
                throw Error(ErrorCode::usage, "--factors", "expected numbers apart by commas",
                            "found " + escaped(factors_));
            found.push_back(value);
            at = end + 1;
        }
        return found;
    }

    void save(const AskRun& run) const {
        const auto vectors = ask::steering_vectors(run.record);
        ask::write_control_vector(saved_, vectors, run.model.config().family, run.inputs);
        finish_progress_line();
        if (vectors.contains(0))
            std::fprintf(stderr, "headscope: warning: %s has no direction for block 0, as llama.cpp has none\n",
                         shown(saved_).c_str());
        print(saved_ + "\n");
    }

    std::vector<std::string> positive_texts_, negative_texts_, positive_tokens_, negative_tokens_;
    std::string at_, factors_, vector_, saved_;
    ask::SteerOptions options_;
};

}  // namespace
}  // namespace ask_steer

std::unique_ptr<AskTool> steer_tool() {
    return std::make_unique<ask_steer::SteerTool>();
}

}  // namespace headscope::app

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/generate/generate.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/tensor.h>

#include "core/base/error.h"
#include "core/model/generate/processors.h"
#include "core/model/generate/sampling.h"
#include "core/model/model.h"
#include "core/model/residual.h"
#include "core/model/towers/cache.h"
#include "core/model/towers/check_batch.h"
#include "core/model/towers/stack.h"

namespace headscope::model {
namespace {

at::Tensor one_sequence(const std::vector<std::int64_t>& ids) {
    return at::tensor(ids, at::kLong).unsqueeze(0);
}

/// The prompt; to an encoder-decoder's encoder, with the start token for its decoder.
Batch first_batch(const ModelConfig& config, std::span<const std::int64_t> prompt) {
    Batch batch;
    batch.ids = one_sequence({prompt.begin(), prompt.end()});
    if (config.encoder) batch.target = one_sequence({config.decoder_start});
    return batch;
}

Batch next_batch(const ModelConfig& config, std::int64_t token) {
    Batch batch;
    (config.encoder ? batch.target : batch.ids) = one_sequence({token});
    return batch;
}

void check(bool causal, bool has_head, const ModelConfig& config, std::span<const std::int64_t> prompt,
           const GenerateOptions& options) {
    const auto refuse = [](const std::string& expected, const std::string& found) {
        throw Error(ErrorCode::usage, "generate", "expected " + expected, "found " + found);
    };
    if (!causal) refuse("a decoder", "an encoder, which predicts no next token");
    if (!has_head) refuse("a model with a head for the vocabulary", "none in the file");
    if (prompt.empty()) refuse("a prompt of at least one token", "none");
    if (!(options.temperature >= 0) || !std::isfinite(options.temperature))
        refuse("a finite temperature of 0 or more", std::to_string(options.temperature));
    if (options.top_k < 0) refuse("a top-k of 0 or more", std::to_string(options.top_k));
    if (!(options.top_p > 0 && options.top_p <= 1))
        refuse("a top-p above 0 and at most 1", std::to_string(options.top_p));
    if (config.encoder && config.decoder_start < 0)
        refuse("a model that names the token its decoder starts with (decoder_start_token_id)", "none");
    check_batch(first_batch(config, prompt), config, 0, options.beyond_positions);
}

/// While it lives, a stack knows how long the text will be.
class ExpectedLength {
public:
    ExpectedLength(Model& model, std::int64_t tokens) : stack_(dynamic_cast<Stack*>(&model)) {
        if (stack_) stack_->expect(tokens);
    }
    ~ExpectedLength() {
        if (stack_) stack_->expect(0);
    }
    ExpectedLength(const ExpectedLength&) = delete;
    ExpectedLength& operator=(const ExpectedLength&) = delete;

private:
    Stack* stack_;
};

/// Everything of a generation that is NaN or infinite, a sentence each.
class NotFiniteNumbers {
public:
    explicit NotFiniteNumbers(const Model& model) : weights_(weights_problem(model.report())) {}

    Probe* probe() { return &probe_; }
    void see(std::span<const float> logits, std::size_t made) {
        if (std::any_of(logits.begin(), logits.end(), [](float logit) { return std::isnan(logit); })) {
            std::string found = "found NaN for token " + std::to_string(made) + " of the answer";
            for (const std::string& sentence : sentences()) found += "; " + sentence;
            throw Error(ErrorCode::limit, "logits", "expected numbers for every entry of the vocabulary", found);
        }
        const bool infinite = std::any_of(logits.begin(), logits.end(), [](float logit) { return std::isinf(logit); });
        if (infinite && logits_.empty())
            logits_ = "logits: infinite, first for token " + std::to_string(made) + " of the answer";
    }
    std::vector<std::string> sentences() const {
        std::vector<std::string> all;
        if (!weights_.empty()) all.push_back(weights_);
        if (const auto& place = probe_.found()) all.push_back("activations: NaN or infinite, first in " + place->name);
        if (!logits_.empty()) all.push_back(logits_);
        return all;
    }

private:
    std::string weights_, logits_;
    ResidualProbe probe_;
};

/// The float32 logits that a token is chosen from.
std::vector<float> processed(const LogitsProcessors& processors, std::span<const std::int64_t> text,
                             std::span<const float> logits) {
    std::vector<double> scores(logits.begin(), logits.end());
    processors.apply(text, scores);
    return {scores.begin(), scores.end()};
}

}  // namespace

void check_prompt(const Inspection& inspection, std::span<const std::int64_t> prompt, const GenerateOptions& options) {
    check(inspection.config.causal, inspection.has_head, inspection.config, prompt, options);
}

void check_prompt(const Model& model, std::span<const std::int64_t> prompt, const GenerateOptions& options) {
    check(model.causal(), model.has_head(), model.config(), prompt, options);
}

std::int64_t room_for_tokens(const ModelConfig& config, std::int64_t tokens, bool beyond_positions) {
    const bool endless = config.max_positions == 0 || (beyond_positions && !config.positions_are_a_table);
    return endless ? std::numeric_limits<std::int64_t>::max() : config.max_positions - tokens + 1;
}

std::vector<std::int64_t> generate(Model& model, std::span<const std::int64_t> prompt, const GenerateOptions& options) {
    check_prompt(model, prompt, options);
    const std::unique_ptr<Cache> cache = model.new_cache();
    ForwardOptions forward;
    forward.cache = cache.get();
    forward.beyond_positions = options.beyond_positions;
    forward.skip_layers = options.skip_layers;
    forward.editor = options.editor;
    forward.cancellation = options.cancellation;
    NotFiniteNumbers numbers(model);
    forward.probe = numbers.probe();
    Random random(options.seed);

    const ModelConfig& config = model.config();
    Batch batch = first_batch(config, prompt);
    const std::int64_t limit =
        std::min(options.tokens, room_for_tokens(config, batch.predicted().size(1), options.beyond_positions));
    // The last new token is not read.
    const ExpectedLength expected(model, std::ssize(prompt) + limit - 1);
    std::vector<std::int64_t> text(prompt.begin(), prompt.end()), made;
    if (config.encoder) text = {config.decoder_start};
    const LogitsProcessors processors(
        options.settings, {prompt, options.end_tokens, std::ssize(text), std::ssize(text) + limit, config.vocabulary});
    while (static_cast<std::int64_t>(made.size()) < limit) {
        if (options.cancellation) options.cancellation->check();
        const at::Tensor hidden = model.forward(batch, forward);
        const at::Tensor row = model.logits(hidden.select(0, 0).narrow(0, hidden.size(1) - 1, 1)).contiguous();
        const std::span<const float> logits(row.const_data_ptr<float>(), static_cast<std::size_t>(row.numel()));
        numbers.see(logits, made.size());
        const std::vector<float> changed =
            processors.empty() ? std::vector<float>{} : processed(processors, text, logits);
        const std::int64_t token = choose_token(processors.empty() ? logits : changed, options.temperature,
                                                options.top_k, options.top_p, random, options.min_p);
        made.push_back(token);
        text.push_back(token);
        if (options.on_token) options.on_token(token);
        if (std::find(options.end_tokens.begin(), options.end_tokens.end(), token) != options.end_tokens.end()) break;
        if (options.enough && options.enough(token)) break;
        batch = next_batch(config, token);
    }
    if (options.problems) *options.problems = numbers.sentences();
    return made;
}

}  // namespace headscope::model

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A continuation that is made token by token and can go back: the engine of `ask generate` and of the window's view
// "Step by step". Threads: the compute thread. Errors: headscope::Error; Stopped, with the steps before it in place.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/base/progress.h"
#include "core/model/edits/editor.h"
#include "core/model/generate/sampling.h"

namespace headscope::model {
class Cache;
class Model;
}  // namespace headscope::model
namespace headscope::store {
struct AskRecord;
}

namespace headscope::ask {

struct SessionOptions {
    std::int64_t top = 5;
    double temperature = 0;  ///< 0: greedy
    std::uint64_t seed = 0;
    std::vector<std::int64_t> end_tokens;
    bool maps = false;                ///< keeps the rows
    model::Editor* editor = nullptr;  ///< of every pass; null: none
};

/// The rows of one softmax site that led to a token: by head, of keys `first_key` .. first_key + keys - 1. Keys of
/// cross-attention are the source's, at no distance: NaN.
struct GeneratedRow {
    std::int64_t site = 0, first_key = 0, keys = 0;
    std::vector<double> entropy, sink, mean_distance;  ///< [heads]
    std::vector<float> weights;                        ///< [heads, keys]; empty without SessionOptions::maps
};

struct GeneratedStep {
    std::int64_t token = -1;
    bool replaced = false;       ///< given by the caller in place of the chosen one
    double log_probability = 0;  ///< of `token`, at temperature 1
    std::vector<std::int64_t> top_id;
    std::vector<double> top_probability;
    std::vector<GeneratedRow> rows;
};

/// Refuses everything that generate() refuses for `tokens` new tokens; `where` names the option in the error. `target`:
/// of an encoder-decoder, whose encoder reads the prompt, the decoder's input; empty: its start token alone.
void check_continuation(const model::Model& model, std::span<const std::int64_t> prompt,
                        std::span<const std::int64_t> target, double temperature, std::int64_t tokens,
                        const char* where);

class GenerationSession {
public:
    /// Reads nothing yet. Throws as check_continuation().
    GenerationSession(model::Model& model, SessionOptions options, std::vector<std::int64_t> prompt,
                      std::vector<std::int64_t> target = {});
    ~GenerationSession();
    GenerationSession(const GenerationSession&) = delete;
    GenerationSession& operator=(const GenerationSession&) = delete;

    const std::vector<GeneratedStep>& steps() const { return steps_; }
    const SessionOptions& options() const { return options_; }
    bool ended() const;         ///< the last token is an end token
    std::int64_t room() const;  ///< tokens that may still follow

    /// Appends a token: the chosen one, or `given`. Throws usage after an end token and for tokens beyond the
    /// vocabulary, limit without room and for NaN.
    const GeneratedStep& step(const Cancellation& cancellation, std::optional<std::int64_t> given = std::nullopt);
    /// Drops the tokens from step `count` on, and with them what the cache holds of them.
    void keep(std::int64_t count);
    /// Puts `token` in place of that of step `at`; later steps go. Reads the row again, so it takes a pass.
    const GeneratedStep& replace(std::int64_t at, std::int64_t token, const Cancellation& cancellation);
    /// Continues with the same weights, loaded once more, and their editor.
    void rebind(model::Model& model, model::Editor* editor);

private:
    void check_token(std::int64_t token) const;
    std::int64_t token_at(std::int64_t position) const;
    at::Tensor pass(std::span<const std::int64_t> ids, model::Editor* editor, const Cancellation& cancellation);
    at::Tensor pass_of_one(std::int64_t token, GeneratedStep* step, const Cancellation& cancellation);
    void read_up_to(std::int64_t length, const Cancellation& cancellation);
    void cut_cache(std::int64_t length);
    void snapshot();
    GeneratedRow measured(const model::PointKey& key, const at::Tensor& pattern, std::int64_t tokens) const;
    void choose(GeneratedStep& step, const at::Tensor& logits, model::Random& random,
                std::optional<std::int64_t> given) const;

    model::Model* model_;
    SessionOptions options_;
    std::vector<std::int64_t> source_;  ///< of an encoder; empty: one stack
    std::vector<std::int64_t> prompt_;  ///< the first tokens of the stack that continues
    std::set<model::PointKey> places_;  ///< of that stack's patterns
    std::vector<GeneratedStep> steps_;
    std::vector<model::Random> draws_;  ///< [steps + 1], before each step
    std::unique_ptr<model::Cache> cache_;
    std::vector<std::unique_ptr<model::Cache>> snapshots_;  ///< by length; of caches that cannot drop tokens
};

/// Puts a step into the tables of add_generation_tables().
void put_step(store::AskRecord& record, std::int64_t sequence, std::int64_t step, const GeneratedStep& value);

}  // namespace headscope::ask

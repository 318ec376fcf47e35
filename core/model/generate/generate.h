// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Text token by token, with one mixer cache a layer. Works on tokens: encoding and decoding are the tokenizer's.
// Threads: the compute thread. Errors: headscope::Error (usage for a model without head or an encoder; limit for
// positions), Stopped when cancelled.

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/model/load/generation_settings.h"

namespace headscope::model {

class Editor;
class Model;
struct Inspection;
struct ModelConfig;

struct GenerateOptions {
    std::int64_t tokens = 100;  ///< limit of new tokens
    double temperature = 0;     ///< 0: greedy, the largest logit (the first of equal ones)
    std::int64_t top_k = 0;     ///< 0: all; else only the k largest
    double top_p = 1;           ///< the smallest set of tokens whose probabilities reach p
    double min_p = 0;           ///< only tokens with at least this share of the largest probability
    std::uint64_t seed = 0;
    std::vector<std::int64_t> end_tokens;  ///< generation stops after one of them (it is part of the result)
    GenerationSettings settings;           ///< of the checkpoint's files: what they do to logits applies
    bool beyond_positions = false;
    std::set<int> skip_layers;  ///< whole blocks left out
    Editor* editor = nullptr;   ///< of each forward pass; null: none
    const Cancellation* cancellation = nullptr;
    std::function<void(std::int64_t token)> on_token;  ///< called as each new token is known
    std::function<bool(std::int64_t token)>
        enough;  ///< asked behind each: true ends the text (the token is part of it)
    /// Gets, when all tokens are made, a sentence for each kind of numbers that are NaN or infinite and made no
    /// difference to that: weights, activations, logits.
    std::vector<std::string>* problems = nullptr;
};

/// The new tokens that follow `prompt` (not empty): of an encoder-decoder, what its decoder says to the prompt, after
/// its start token. Stops at an end token, at `tokens`, or at the model's last
/// position. Logits that are NaN are refused, with where the first such numbers are.
std::vector<std::int64_t> generate(Model& model, std::span<const std::int64_t> prompt, const GenerateOptions& options);

/// Refuses what generate() would refuse before its first token, from the checkpoint's description: reads no weights.
void check_prompt(const Inspection& inspection, std::span<const std::int64_t> prompt, const GenerateOptions& options);

/// The same of a model that is there.
void check_prompt(const Model& model, std::span<const std::int64_t> prompt, const GenerateOptions& options);

/// How many tokens may follow `tokens` of them: one more than there are positions left, as the last is not read.
std::int64_t room_for_tokens(const ModelConfig& config, std::int64_t tokens, bool beyond_positions);

}  // namespace headscope::model

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Log-likelihoods of continuations behind contexts, to lm-eval's rules (lm_eval/models/huggingface.py, _encode_pair,
// _loglikelihood_tokens): texts to ids, then passes of a model in which nothing is read twice that need not be.
// Threads: encoding any; scoring the compute thread. Errors: Error, Stopped.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/evaluation/harness/harness_items.h"
#include "core/evaluation/score.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::checkpoint {
class Checkpoint;
}
namespace headscope::evaluation {

/// How texts become ids for one model.
struct HarnessTokens {
    std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
    std::optional<std::int32_t> prefix;  ///< the tokenizer's bos_token, else its eos_token
    std::string prefix_text;             ///< a text that begins with it gets no special tokens
    std::int64_t length = 2048;          ///< what the model may read at once (lm-eval's max_length)
    bool encoder_decoder = false;        ///< the context is read by the encoder, the continuation is the target
};

/// Prefix and length of a checkpoint; `length` > 0 overrides. Throws usage for a checkpoint without a tokenizer.
HarnessTokens harness_tokens(const checkpoint::Checkpoint& checkpoint,
                             std::shared_ptr<const tokenizer::Tokenizer> tokenizer, std::int64_t length);

/// A request as ids, cut to the length: `ids` are read but for the last; the last `scored` are predicted. Of an
/// encoder-decoder `source` is what its encoder reads, and all of `ids` are scored.
struct HarnessRequest {
    std::vector<std::int64_t> ids, source;
    std::int64_t scored = 0;
    bool cut = false;  ///< tokens of the context were left out
    /// Compares ids and scored tokens; `cut` does not count.
    bool operator==(const HarnessRequest& other) const {
        return ids == other.ids && source == other.source && scored == other.scored;
    }
};
/// Throws Error usage that names `place` for a text of no token, limit for a continuation longer than the length.
HarnessRequest encode_request(const HarnessTokens& tokens, const TextPair& texts, const std::string& place);
/// A page's windows, behind the prefix token: disjoint, the last reaching back. A page of no token has none; without a
/// prefix the first token is read and not predicted.
std::vector<HarnessRequest> encode_page(const HarnessTokens& tokens, const std::string& page, const std::string& place);

struct RequestScore {
    double loglikelihood = 0;  ///< nats, sum over the scored tokens
    bool greedy = true;        ///< every one of them has the largest logit (of equal ones the first)
    std::vector<float> each;   ///< log-likelihood of each scored token
};

/// One score a request, in order. Equal requests are scored once; requests that differ in their last token only share a
/// pass; requests behind one long context read it once, where the model has a cache. Batches hold at most
/// `options.batch_tokens` tokens, longest first, and their padding changes nothing. `progress`: requests done.
std::vector<RequestScore> score_requests(model::Model& model, std::span<const HarnessRequest> requests,
                                         const ScoreOptions& options,
                                         const std::function<void(std::int64_t done)>& progress = {});

}  // namespace headscope::evaluation

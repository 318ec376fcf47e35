// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Learns a byte-level BPE vocabulary from text (Sennrich, Haddow and Birch 2016; bytes and words as GPT-2's), with the
// same result as the `tokenizers` library's BpeTrainer (0.23) on the same text and settings: vocabulary, merges, ties.
// Its rules are in merge_learner.cpp. Deterministic, whatever the order of the text.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/progress.h"

namespace headscope::tokenizer {

struct BpeSettings {
    std::int64_t vocabulary = 30000;          ///< ids to reach, special tokens and bytes among them
    std::int64_t least_frequency = 0;         ///< rarer pairs are not merged
    std::vector<std::string> special_tokens;  ///< the first ids
    bool all_bytes = true;                    ///< all 256 bytes have an id, else those of the text
};

struct TrainedBpe {
    std::vector<std::string> pieces;  ///< by id, spelled in the byte-level alphabet (byte_level.h)
    std::vector<std::pair<std::int32_t, std::int32_t>> merges;  ///< ids of the two pieces, first merge first
    std::vector<std::int32_t> special_tokens;                   ///< their ids
};

/// Errors: headscope::Error. Threads: one at a time.
class BpeTrainer {
public:
    explicit BpeTrainer(BpeSettings settings);
    ~BpeTrainer();
    /// Counts the words of a text (valid UTF-8 below 2 GiB). A word does not reach from one text into the next.
    void feed(std::string_view text);
    /// Different words so far.
    std::int64_t words() const;
    /// Stops early where the text has no more pairs to merge. Throws Stopped.
    TrainedBpe train(Progress& progress, const Cancellation& cancellation) const;

private:
    struct Words;
    BpeSettings settings_;
    std::unique_ptr<Words> words_;
};

/// tokenizer.json of a byte-level BPE: `split_words` cuts text into GPT-2's words first, as a trained one wants it.
std::string byte_level_json(const TrainedBpe& model, bool split_words);

/// The 256 bytes by their value, then special tokens, no merges: a tokenizer that every reader of tokenizer.json opens.
TrainedBpe byte_vocabulary(const std::vector<std::string>& special_tokens);

}  // namespace headscope::tokenizer

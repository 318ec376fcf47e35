// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Hashes of words where no model is at hand: to look at what MD5 and LSH make of a word.

#include <memory>

#include "core/tokenizer/hashed/word_hash.h"

namespace headscope::tokenizer {

/// 128 bits, in groups of 10. md5: with the key "en"; lsh: over the n-grams of a few hundred frequent English words,
/// with a normal that is always the same. Made once; any thread.
std::shared_ptr<const WordHash> sample_hash(WordHashKind kind);

}  // namespace headscope::tokenizer

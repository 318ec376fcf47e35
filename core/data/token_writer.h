// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "core/base/io/sha256.h"
#include "core/data/source/scratch_file.h"
#include "core/data/token_file.h"

namespace headscope::data {

/// Writes a token file, which appears whole or not at all. Memory: some megabytes, however many tokens come.
/// Errors: Error io. Threads: one at a time.
class TokenWriter {
public:
    /// `info` says what is known before: vocabulary, separator, numbers a token, documents an item, tokenizer, key,
    /// sources.
    TokenWriter(std::filesystem::path target, TokenFileInfo info);

    /// `label`: of items.
    void begin_document(std::int32_t source, float label = 0);
    void append(std::span<const std::int32_t> ids);
    /// Adds the separator; a document without tokens is none, but where documents are parts of items.
    void end_document();
    std::int64_t tokens() const noexcept { return info_.tokens; }
    std::int64_t documents() const noexcept { return info_.documents; }
    /// Documents from here on are held out.
    void begin_validation() { info_.validation_begin = info_.tokens; }
    /// The last `share` of the tokens, or of the items, is held out.
    void hold_out(double share);
    /// At least one token must have come.
    void publish(const Cancellation& cancellation);

private:
    std::filesystem::path target_;
    TokenFileInfo info_;
    ScratchFile tokens_, begins_, sources_, labels_;
    Sha256 hash_, begins_hash_, labels_hash_;
    std::vector<std::uint16_t> narrow_;
    std::int64_t document_begin_ = 0;
    std::int32_t document_source_ = 0;
    float document_label_ = 0;
    std::vector<std::int64_t> item_begins_;  ///< first token of each item
};

}  // namespace headscope::data

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What happens to the tokens of a text at the end: special tokens around them, tighter offsets. One class a kind of
// tokenizer.json's "post_processor"; immutable. Single texts only: pairs are not encoded.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::tokenizer {

/// An encoding under way.
struct Draft {
    Encoding encoding;
    std::string_view text;  ///< the original
    std::size_t begin = 0;  ///< tokens [begin, end) are the text's own
    std::size_t end = 0;
    /// The spelling of the text's own token `begin + i`.
    std::function<std::string_view(std::size_t i)> piece;
    /// The piece of an id.
    std::function<std::string(std::int32_t id)> spelling;
};

/// A token that a post-processor puts in, by the name that the file gives it there.
struct InsertedToken {
    std::int32_t id = 0;
    std::string name;
};

class PostProcessor {
public:
    virtual ~PostProcessor() = default;
    virtual void apply(Draft& draft, bool add_special_tokens) const = 0;
    virtual bool adds_first_token() const { return false; }
    virtual bool adds_tokens() const { return false; }
};

/// The post-processor that `description` tells of. Error(unsupported) names a kind that is not known.
std::unique_ptr<PostProcessor> make_post_processor(const JsonView& description);

std::unique_ptr<PostProcessor> make_template(const JsonView& description);
std::unique_ptr<PostProcessor> make_bert_processing(const JsonView& description);
std::unique_ptr<PostProcessor> make_roberta_processing(const JsonView& description);
std::unique_ptr<PostProcessor> make_byte_level_processing(const JsonView& description);

/// Takes the white space of the text's own tokens out of their offsets; with `add_prefix_space` a single space that was
/// put before the text stays. Counted in characters of the spelling, as the library does.
void trim_offsets(Draft& draft, bool add_prefix_space);

/// Puts tokens around those that are there.
void surround(Draft& draft, const std::vector<InsertedToken>& before, const std::vector<InsertedToken>& after);

}  // namespace headscope::tokenizer

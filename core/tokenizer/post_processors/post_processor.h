// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Last step on the tokens of a text: special tokens around them, tighter offsets. One class per kind of
// tokenizer.json's "post_processor"; immutable.

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json/json.h"

namespace headscope::tokenizer {

/// One of the text's own tokens on its way out.
struct TextToken {
    std::string_view text;   ///< the original
    std::string_view piece;  ///< the token's spelling
    bool is_first = false;   ///< of the text's own
    /// Members of a sequence from this one on see something before it nevertheless (Layout).
    std::size_t first_until = std::numeric_limits<std::size_t>::max();
    std::uint32_t begin = 0, end = 0;
};

/// A token that a post-processor puts in, by the name that the file gives it there.
struct InsertedToken {
    std::int32_t id = 0;
    std::string name;
};

/// Layout of a text or a pair: inserted tokens, and the texts' own between them. It starts as one group per text. A
/// template forms other groups; a later processor puts its tokens around each group.
struct LayoutItem {
    bool special = true;                                                ///< of a token that is put in, how it is marked
    std::optional<InsertedToken> token;                                 ///< none: all of the text's own
    std::size_t first_until = std::numeric_limits<std::size_t>::max();  ///< of those, as of TextToken
    std::int32_t type = 0;                                              ///< token type
    std::size_t text = 0;  ///< which of a pair's; of no token that is put in
};
using Layout = std::vector<std::vector<LayoutItem>>;

class PostProcessor {
public:
    virtual ~PostProcessor() = default;
    /// Changes the offsets of a token where adjusts() says that there is something to change.
    virtual void adjust(TextToken&) const {}
    virtual bool adjusts() const { return false; }
    /// Puts in special tokens, if they are wanted, and what else it does to the text as a whole.
    virtual void arrange(Layout&, [[maybe_unused]] bool special_tokens) const {}
};

/// Makes the post-processor of `description`. Error(unsupported) names an unknown kind.
std::unique_ptr<PostProcessor> make_post_processor(const JsonView& description);

std::unique_ptr<PostProcessor> make_template(const JsonView& description);
std::unique_ptr<PostProcessor> make_bert_processing(const JsonView& description);
std::unique_ptr<PostProcessor> make_roberta_processing(const JsonView& description);
std::unique_ptr<PostProcessor> make_byte_level_processing(const JsonView& description);

/// Takes the white space of one of the text's own tokens out of its offsets; with `add_prefix_space` a single space
/// that was put before the text stays. Counted in characters of the spelling, as the library does.
void trim_offsets(TextToken& token, bool add_prefix_space);

}  // namespace headscope::tokenizer

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/data/batch/batch_source.h"
#include "core/data/source/text_item.h"
#include "core/data/special_tokens.h"
#include "core/data/token_code.h"
#include "core/data/token_file.h"

namespace headscope::data {

/// An item whose texts are numbers (token_code.h).
struct TokenItem {
    std::vector<std::int64_t> text, other;
    bool has_other = false;
    float label = 0;
};

struct ItemRows {
    std::int64_t epoch = 0;  ///< items; 0: endless
    std::function<TokenItem(std::int64_t index)> read;
};

/// The items of one part of a token file, in another order each epoch; of each text at most `tokens` tokens, the first
/// ones or, with `keep_end`, the last.
ItemRows stored_items(std::shared_ptr<const TokenFile> file, Split split, std::uint64_t seed, std::int64_t tokens,
                      bool keep_end);
/// Items that are made as they are read.
ItemRows made_items(std::function<TextItem(std::int64_t index)> make, TokenCode code);

/// How items become sequences; N: data.sequence_length.
struct ItemForm {
    ObjectiveSettings objective;
    TokenCode code;
    SpecialIds special;  ///< translation: `first` starts what the decoder reads
    Frame frame;
    std::int64_t length;    ///< N
    bool keep_end = false;  ///< of a text that is cut (keeps_the_end())
};

/// The items of one part of a token file. Error usage for none.
TokenRange items_of(const TokenFile& file, Split split);

/// Error usage for a tokenizer without what the objective needs, and for an N without room for a token.
void check(const ItemForm& form);

/// translation: the source with what its tokenizer puts around texts, at most N tokens; the decoder reads `first` and
/// the target, and is to say the target and </s>, at most N. classify: the text, or pair, with what the tokenizer puts
/// around it and, of a pair, its token types; a pair that is too long is cut by longest_first().
/// Batches are as long as their longest sequence, and count the items of which something was cut.
class ItemSource final : public BatchSource {
public:
    ItemSource(ItemRows rows, ItemForm form);
    std::int64_t epoch() const override { return rows_.epoch; }
    DataBatch read(std::int64_t first, std::int64_t count) const override;

private:
    SpoiltSequence framed(const TokenItem& item, bool& cut) const;
    void add_targets(const std::vector<TokenItem>& items, DataBatch& batch) const;

    ItemRows rows_;
    ItemForm form_;
};

}  // namespace headscope::data

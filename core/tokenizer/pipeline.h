// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <unordered_set>
#include <vector>

#include "core/tokenizer/added_tokens.h"
#include "core/tokenizer/decoders/decoder.h"
#include "core/tokenizer/models/model.h"
#include "core/tokenizer/normalizers/normalizer.h"
#include "core/tokenizer/post_processors/post_processor.h"
#include "core/tokenizer/pre_tokenizers/pre_tokenizer.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::tokenizer {

/// The parts of a tokenizer.json; all but the model may be absent.
struct PipelineParts {
    std::unique_ptr<Normalizer> normalizer;
    std::unique_ptr<PreTokenizer> pre_tokenizer;
    std::unique_ptr<Model> model;
    std::unique_ptr<PostProcessor> post_processor;
    std::unique_ptr<Decoder> decoder;
    AddedTokens added;
    bool spells_byte_level = false;  ///< pieces are written in the byte-level alphabet
    std::string space;               ///< what pieces have for a space, beside the space itself; mostly U+2581
    bool types = true;               ///< false: all token types are 0
    bool cleans_answers = false;     ///< Tokenizer::answer
};

/// The tokenizer that a tokenizer.json document describes; its long lists may be packed (document.h). `where` names it.
/// `target` is what Tokenizer::of_target gives then.
struct PipelineChoices {
    bool types = true, cleans_answers = false;  ///< PipelineParts
};
std::shared_ptr<const Tokenizer> make_pipeline(const nlohmann::json& document, const std::string& where,
                                               PipelineChoices choices,
                                               std::shared_ptr<const Tokenizer> target = nullptr);

/// A tokenizer made of parts: added tokens, normaliser, pre-tokeniser, model, post-processor; and a decoder.
class Pipeline final : public Tokenizer {
public:
    explicit Pipeline(PipelineParts parts, std::shared_ptr<const Tokenizer> target = nullptr);
    const Tokenizer& of_target() const override { return target_ ? *target_ : *this; }

    void encode_into(TokenSink& sink, std::string_view text, bool add_special_tokens,
                     const Cancellation* cancellation) const override;
    void encode_pair_into(TokenSink& sink, std::string_view first, std::string_view second, bool add_special_tokens,
                          const Cancellation* cancellation) const override;
    std::vector<FramePart> frame(bool pair) const override;
    std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const override;
    std::string answer(std::span<const std::int32_t> ids) const override;
    bool cleans_answers() const override { return parts_.cleans_answers; }
    std::string piece(std::int32_t id) const override;
    std::string surface(std::int32_t id) const override;
    std::int64_t vocabulary_size() const override;
    std::optional<std::int32_t> id_of(std::string_view piece) const override;
    bool adds_first_token() const override;

private:
    class Writer;
    Pieces cut(std::string_view text, const Cancellation* cancellation) const;
    /// The items of a layout over a text or two.
    void encode(TokenSink& sink, std::span<const std::string_view> texts, std::span<const LayoutItem> layout,
                const Cancellation* cancellation) const;
    void insert(TokenSink& sink, const LayoutItem& item) const;
    std::vector<LayoutItem> arranged(Layout layout, bool special) const;
    std::vector<LayoutItem> pair_layout(bool special) const;

    PipelineParts parts_;
    std::shared_ptr<const Tokenizer> target_;        ///< null: none but this
    std::vector<LayoutItem> layout_, plain_layout_;  ///< with special tokens and without
    std::unordered_set<std::int32_t> shadowed_;  ///< pieces whose ids read as an added token's normalised text instead
};

}  // namespace headscope::tokenizer

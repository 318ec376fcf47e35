// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/pre_tokenizers/metaspace.h"

#include <algorithm>

#include "core/tokenizer/pre_tokenizers/pre_tokenizer.h"
#include "core/tokenizer/regex/pattern_field.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

MetaspaceFields metaspace_fields(const JsonView& description) {
    MetaspaceFields fields;
    fields.replacement = to_utf8(character_field(description.at("replacement")));
    const std::string scheme = description.string_or("prepend_scheme", "always");
    if (scheme == "first") {
        fields.prepend = PrependScheme::first;
    } else if (scheme == "never") {
        fields.prepend = PrependScheme::never;
    } else if (scheme != "always") {
        description.at("prepend_scheme").refuse(ErrorCode::unsupported, "expected always, first or never");
    }
    // Files older than prepend_scheme say add_prefix_space.
    if (!description.boolean_or("add_prefix_space", true)) {
        if (description.has("prepend_scheme") && fields.prepend != PrependScheme::never) {
            description.at("prepend_scheme")
                .refuse(ErrorCode::mismatch, "expected never, as add_prefix_space is false");
        }
        fields.prepend = PrependScheme::never;
    }
    return fields;
}

namespace {

/// Sentencepiece's way: spaces become a visible character, and words begin with it.
class Metaspace final : public PreTokenizer {
public:
    explicit Metaspace(const JsonView& description)
        : fields_(metaspace_fields(description)),
          split_(description.boolean_or("split", true)),
          matcher_(literal_matcher(fields_.replacement)) {}

    void apply(Pieces& pieces) const override {
        const std::string& old = pieces.text().text();
        const auto spaces = static_cast<std::size_t>(std::count(old.begin(), old.end(), ' '));
        pieces.rewrite(
            [this](const Piece& piece, std::string_view text, SpanReader& spans, AlignedBuilder& result) {
                const bool wanted = fields_.prepend == PrependScheme::always ||
                                    (fields_.prepend == PrependScheme::first && piece.is_first);
                if (wanted && text.front() != ' ' && !text.starts_with(fields_.replacement)) {
                    result.put(fields_.replacement, spans.at(piece.begin));
                }
                std::size_t last = 0;
                for (std::size_t at = text.find(' '); at != std::string_view::npos; at = text.find(' ', at + 1)) {
                    result.copy(piece.begin + last, piece.begin + at);
                    result.put(fields_.replacement, spans.at(piece.begin + at));
                    last = at + 1;
                }
                result.copy(piece.begin + last, piece.end);
            },
            spaces * (fields_.replacement.size() - 1));
        if (split_) pieces.split(*matcher_, SplitBehavior::merged_with_next);
    }

private:
    MetaspaceFields fields_;
    bool split_;
    std::unique_ptr<Matcher> matcher_;
};

}  // namespace

std::unique_ptr<PreTokenizer> make_metaspace(const JsonView& description) {
    return std::make_unique<Metaspace>(description);
}

}  // namespace headscope::tokenizer

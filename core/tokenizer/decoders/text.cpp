// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/tokenizer/decoders/decoder.h"
#include "core/tokenizer/pre_tokenizers/metaspace.h"
#include "core/tokenizer/regex/pattern_field.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

namespace {

std::string replaced(std::string_view text, std::string_view wanted, std::string_view content) {
    std::string result;
    if (wanted.empty()) {  // between all characters
        for (std::size_t at = 0; at < text.size(); at += utf8_length(text[at])) {
            result.append(content).append(text.substr(at, utf8_length(text[at])));
        }
        return result.append(content);
    }
    std::size_t last = 0;
    for (std::size_t at = find_text(text, wanted, 0); at != std::string_view::npos;
         at = find_text(text, wanted, last)) {
        result.append(text.substr(last, at - last)).append(content);
        last = at + wanted.size();
    }
    return result.append(text.substr(last));
}

// Undoes the spaces of English tokenization; in this order.
std::string cleaned_up(std::string text) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> steps = {{{" .", "."},
                                                                                             {" ?", "?"},
                                                                                             {" !", "!"},
                                                                                             {" ,", ","},
                                                                                             {" ' ", "'"},
                                                                                             {" n't", "n't"},
                                                                                             {" 'm", "'m"},
                                                                                             {" do not", " don't"},
                                                                                             {" 's", "'s"},
                                                                                             {" 've", "'ve"},
                                                                                             {" 're", "'re"}}};
    for (const auto& [wanted, content] : steps) text = replaced(text, wanted, content);
    return text;
}

class Metaspace final : public Decoder {
public:
    explicit Metaspace(const JsonView& description) : fields_(metaspace_fields(description)) {}
    void apply(std::vector<std::string>& pieces) const override {
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            const bool dropped = i == 0 && fields_.prepend != PrependScheme::never;
            pieces[i] = replaced(pieces[i], fields_.replacement, dropped ? "" : " ");
        }
    }

private:
    MetaspaceFields fields_;
};

/// Takes up to `start` characters off the front of every piece and up to `stop` off its end, while they are `content`.
class Strip final : public Decoder {
public:
    explicit Strip(const JsonView& description)
        : content_(to_utf8(character_field(description.at("content")))),
          start_(description.at("start").integer({0, std::numeric_limits<std::int32_t>::max()})),
          stop_(description.at("stop").integer({0, std::numeric_limits<std::int32_t>::max()})) {}

    void apply(std::vector<std::string>& pieces) const override {
        for (std::string& piece : pieces) {
            std::string_view rest = piece;
            for (std::int64_t i = 0; i < start_ && rest.starts_with(content_); ++i) rest.remove_prefix(content_.size());
            for (std::int64_t i = 0; i < stop_ && rest.ends_with(content_); ++i) rest.remove_suffix(content_.size());
            if (rest.size() != piece.size()) piece = std::string(rest);
        }
    }

private:
    std::string content_;
    std::int64_t start_;
    std::int64_t stop_;
};

class Replace final : public Decoder {
public:
    explicit Replace(const JsonView& description)
        : matcher_(pattern_field(description.at("pattern"))), content_(description.at("content").string()) {}

    void apply(std::vector<std::string>& pieces) const override {
        std::vector<Match> matches;
        std::size_t bytes = 0;
        for (const std::string& piece : pieces) bytes += piece.size();
        SearchWatch watch(bytes);
        for (std::string& piece : pieces) {
            matches.clear();
            if (!piece.empty()) matcher_->each(piece, watch, [&matches](Match match) { matches.push_back(match); });
            if (matches.empty()) continue;
            std::string result;
            std::size_t last = 0;
            for (const Match& match : matches) {
                result.append(piece, last, match.begin - last).append(content_);
                last = match.end;
            }
            piece = result.append(piece, last);
        }
    }

private:
    std::unique_ptr<Matcher> matcher_;
    std::string content_;
};

class BpeDecoder final : public Decoder {
public:
    explicit BpeDecoder(const JsonView& description) : suffix_(description.at("suffix").string()) {}
    void apply(std::vector<std::string>& pieces) const override {
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            pieces[i] = replaced(pieces[i], suffix_, i + 1 == pieces.size() ? "" : " ");
        }
    }

private:
    std::string suffix_;
};

class WordPiece final : public Decoder {
public:
    explicit WordPiece(const JsonView& description)
        : prefix_(description.at("prefix").string()), clean_up_(description.at("cleanup").boolean()) {}
    void apply(std::vector<std::string>& pieces) const override {
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            if (i > 0) pieces[i] = pieces[i].starts_with(prefix_) ? pieces[i].substr(prefix_.size()) : " " + pieces[i];
            if (clean_up_) pieces[i] = cleaned_up(std::move(pieces[i]));
        }
    }

private:
    std::string prefix_;
    bool clean_up_;
};

/// Connectionist temporal classification: repeats and padding go.
class Ctc final : public Decoder {
public:
    explicit Ctc(const JsonView& description)
        : padding_(description.at("pad_token").string()),
          delimiter_(description.at("word_delimiter_token").string()),
          clean_up_(description.at("cleanup").boolean()) {}
    void apply(std::vector<std::string>& pieces) const override {
        pieces.erase(std::unique(pieces.begin(), pieces.end()), pieces.end());
        for (std::string& piece : pieces) {
            piece = replaced(piece, padding_, "");
            if (clean_up_) piece = replaced(cleaned_up(std::move(piece)), delimiter_, " ");
        }
        std::erase(pieces, std::string());
    }

private:
    std::string padding_;
    std::string delimiter_;
    bool clean_up_;
};

}  // namespace

std::unique_ptr<Decoder> make_metaspace_decoder(const JsonView& description) {
    return std::make_unique<Metaspace>(description);
}
std::unique_ptr<Decoder> make_strip_decoder(const JsonView& description) {
    return std::make_unique<Strip>(description);
}
std::unique_ptr<Decoder> make_replace_decoder(const JsonView& description) {
    return std::make_unique<Replace>(description);
}
std::unique_ptr<Decoder> make_bpe_decoder(const JsonView& description) {
    return std::make_unique<BpeDecoder>(description);
}
std::unique_ptr<Decoder> make_word_piece_decoder(const JsonView& description) {
    return std::make_unique<WordPiece>(description);
}
std::unique_ptr<Decoder> make_ctc_decoder(const JsonView& description) {
    return std::make_unique<Ctc>(description);
}

}  // namespace headscope::tokenizer

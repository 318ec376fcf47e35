// SPDX-License-Identifier: GPL-3.0-or-later
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/tokenizer/post_processors/post_processor.h"

namespace headscope::tokenizer {

namespace {

constexpr IntegerRange id_range{0, std::numeric_limits<std::int32_t>::max() - 1};

/// Each copy of the text costs as much as the text.
constexpr int most_copies = 16;

/// The text among special tokens, as the template for single texts says: once, more often or not at all.
class Template final : public PostProcessor {
public:
    explicit Template(const JsonView& description) : where_(description.where()) {
        const JsonView single = description.at("single").array();
        const JsonView special = description.at("special_tokens").object();
        int copies = 0;
        for (std::size_t i = 0; i < single.size(); ++i) {
            const JsonView part = single.at(i);
            if (const auto sequence = part.find("Sequence")) {
                if (sequence->at("id").string() != "A")
                    part.refuse(ErrorCode::unsupported, "expected the sequence A alone in a template for single texts");
                if (++copies > most_copies)
                    part.refuse(ErrorCode::limit,
                                "expected the text at most " + std::to_string(most_copies) + " times");
                parts_.emplace_back();
                continue;
            }
            const std::string name = part.at("SpecialToken").at("id").string();
            if (!special.has(name)) {
                throw Error(ErrorCode::mismatch, part.where(), "expected one of special_tokens",
                            "found \"" + escaped(name, 60) + "\"");
            }
            const JsonView token = special.at(name);
            const std::vector<std::int64_t> ids = token.at("ids").integers(id_range);
            const std::vector<std::string> names = token.at("tokens").strings();
            if (ids.size() != names.size()) token.refuse(ErrorCode::mismatch, "expected as many ids as tokens");
            Part& tokens = parts_.emplace_back();
            tokens.is_text = false;
            for (std::size_t k = 0; k < ids.size(); ++k)
                tokens.group.push_back({true, InsertedToken{static_cast<std::int32_t>(ids[k]), names[k]}});
        }
    }

    void arrange(Layout& layout, bool special_tokens) const override {
        if (layout.size() != 1) {
            throw Error(ErrorCode::unsupported, where_, "expected a template before others that make several parts",
                        "found " + std::to_string(layout.size()) + " parts before it");
        }
        Layout made;
        for (const Part& part : parts_) {
            if (part.is_text)
                made.push_back(layout.front());
            else if (special_tokens)
                made.push_back(part.group);
        }
        layout = std::move(made);
    }

private:
    struct Part {
        bool is_text = true;
        std::vector<LayoutItem> group;  ///< of tokens
    };
    std::string where_;
    std::vector<Part> parts_;
};

// ["[SEP]", 102]
InsertedToken token_field(const JsonView& pair) {
    if (!pair.is_array() || pair.size() != 2) pair.refuse(ErrorCode::format, "expected a token and its id");
    return {static_cast<std::int32_t>(pair.at(std::size_t{1}).integer(id_range)), pair.at(std::size_t{0}).string()};
}

/// [CLS] and [SEP], and for RoBERTa tighter offsets.
class ClassifierProcessing final : public PostProcessor {
public:
    ClassifierProcessing(const JsonView& description, bool roberta)
        : before_(token_field(description.at("cls"))),
          after_(token_field(description.at("sep"))),
          roberta_(roberta),
          trim_(roberta && description.at("trim_offsets").boolean()),
          add_prefix_space_(roberta && description.at("add_prefix_space").boolean()) {}

    void adjust(TextToken& token) const override {
        if (trim_) trim_offsets(token, add_prefix_space_);
    }
    bool adjusts() const override { return trim_; }
    void arrange(Layout& layout, bool special_tokens) const override {
        if (!special_tokens) return;
        for (std::size_t i = 0; i < layout.size(); ++i) {
            for (LayoutItem& item : layout[i]) item.special = false;  // as in the reference
            // RoBERTa's second text is between two: <s> A </s></s> B </s>.
            if (i == 0 || roberta_) layout[i].insert(layout[i].begin(), LayoutItem{true, i == 0 ? before_ : after_});
            layout[i].push_back({true, after_});
        }
    }

private:
    InsertedToken before_, after_;
    bool roberta_;
    bool trim_;
    bool add_prefix_space_;
};

}  // namespace

std::unique_ptr<PostProcessor> make_template(const JsonView& description) {
    return std::make_unique<Template>(description);
}
std::unique_ptr<PostProcessor> make_bert_processing(const JsonView& description) {
    return std::make_unique<ClassifierProcessing>(description, false);
}
std::unique_ptr<PostProcessor> make_roberta_processing(const JsonView& description) {
    return std::make_unique<ClassifierProcessing>(description, true);
}

}  // namespace headscope::tokenizer

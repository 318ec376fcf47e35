// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/tokenizer/post_processors/post_processor.h"

namespace headscope::tokenizer {

namespace {

constexpr IntegerRange id_range{0, std::numeric_limits<std::int32_t>::max() - 1};

/// Each copy of the text costs as much as the text.
constexpr int most_copies = 16;

/// The texts among special tokens, by the template for single texts or that for pairs: once, repeatedly or not at all.
/// An error in the latter is thrown when a pair comes: most files never see one.
class Template final : public PostProcessor {
public:
    explicit Template(const JsonView& description)
        : where_(description.where()), single_(parts(description, "single", false)) {
        try {
            pair_ = parts(description, "pair", true);
        } catch (const Error& error) {
            pair_fault_ = error;
        }
    }

    void arrange(Layout& layout, bool special_tokens) const override {
        const auto second = [](const LayoutItem& item) { return item.text == 1; };
        const bool pair = layout.size() == 2 && std::any_of(layout[1].begin(), layout[1].end(), second);
        if (pair && pair_fault_) throw *pair_fault_;
        if (!pair && layout.size() != 1) {
            throw Error(ErrorCode::unsupported, where_, "expected a template before others that make several parts",
                        "found " + std::to_string(layout.size()) + " parts before it");
        }
        Layout made;
        for (const Part& part : pair ? pair_ : single_) {
            if (part.is_text)
                made.push_back(layout[part.text]);
            else if (special_tokens)
                made.push_back(part.group);
            else
                continue;
            for (LayoutItem& item : made.back()) item.type = part.type;
        }
        layout = std::move(made);
    }

private:
    struct Part {
        bool is_text = true;
        std::size_t text = 0;
        std::int32_t type = 0;
        std::vector<LayoutItem> group;  ///< of tokens
    };

    static std::vector<Part> parts(const JsonView& description, const char* which, bool pair) {
        const JsonView list = description.at(which).array();
        const JsonView special = description.at("special_tokens").object();
        std::vector<Part> all;
        int copies = 0;
        for (std::size_t i = 0; i < list.size(); ++i) {
            const JsonView part = list.at(i);
            Part& made = all.emplace_back();
            if (const auto sequence = part.find("Sequence")) {
                const std::string id = sequence->at("id").string();
                if (id != "A" && !(pair && id == "B"))
                    part.refuse(ErrorCode::unsupported,
                                pair ? "expected the sequence A or B"
                                     : "expected the sequence A alone in a template for single texts");
                if (++copies > most_copies)
                    part.refuse(ErrorCode::limit,
                                "expected the text at most " + std::to_string(most_copies) + " times");
                made.text = id == "B" ? 1 : 0;
                made.type = type_of(*sequence);
                continue;
            }
            const JsonView named = part.at("SpecialToken");
            const std::string name = named.at("id").string();
            if (!special.has(name)) {
                throw Error(ErrorCode::mismatch, part.where(), "expected one of special_tokens",
                            "found \"" + escaped(name, 60) + "\"");
            }
            const JsonView token = special.at(name);
            const std::vector<std::int64_t> ids = token.at("ids").integers(id_range);
            const std::vector<std::string> names = token.at("tokens").strings();
            if (ids.size() != names.size()) token.refuse(ErrorCode::mismatch, "expected as many ids as tokens");
            made.is_text = false;
            made.type = type_of(named);
            for (std::size_t k = 0; k < ids.size(); ++k)
                made.group.push_back({true, InsertedToken{static_cast<std::int32_t>(ids[k]), names[k]}});
        }
        return all;
    }

    static std::int32_t type_of(const JsonView& part) {
        const auto type = part.find("type_id");
        return type ? static_cast<std::int32_t>(type->integer(id_range)) : 0;
    }

    std::string where_;
    std::vector<Part> single_, pair_;
    std::optional<Error> pair_fault_;
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
        for (std::size_t i = 0; i < layout.size(); ++i) {
            auto& group = layout[i];
            // RoBERTa knows no types.
            for (LayoutItem& item : group) item.type = roberta_ ? 0 : item.type;
            if (!special_tokens) continue;
            for (LayoutItem& item : group) item.special = false;  // as in the reference
            LayoutItem before{true, i == 0 ? before_ : after_}, after{true, after_};
            before.type = after.type = i == 0 || roberta_ ? 0 : 1;
            // RoBERTa's second text is between two: <s> A </s></s> B </s>.
            if (i == 0 || roberta_) group.insert(group.begin(), before);
            group.push_back(after);
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

// SPDX-License-Identifier: GPL-3.0-or-later
#include <limits>
#include <string>
#include <vector>

#include "core/tokenizer/post_processors/post_processor.h"

namespace headscope::tokenizer {

namespace {

constexpr IntegerRange id_range{0, std::numeric_limits<std::int32_t>::max() - 1};

/// Special tokens before and after the text, as the template for single texts says.
class Template final : public PostProcessor {
public:
    explicit Template(const JsonView& description) {
        const JsonView single = description.at("single").array();
        const JsonView special = description.at("special_tokens").object();
        bool seen = false;
        for (std::size_t i = 0; i < single.size(); ++i) {
            const JsonView part = single.at(i);
            if (const auto sequence = part.find("Sequence")) {
                if (sequence->at("id").string() != "A" || seen) {
                    part.refuse(ErrorCode::unsupported,
                                "expected the sequence A, once, in a template for single texts");
                }
                seen = true;
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
            for (std::size_t k = 0; k < ids.size(); ++k) {
                (seen ? frame_.after : frame_.before).push_back({static_cast<std::int32_t>(ids[k]), names[k]});
            }
        }
        if (!seen) single.refuse(ErrorCode::unsupported, "expected a template with the sequence A");
    }

    const Frame* frame() const override { return frame_.before.empty() && frame_.after.empty() ? nullptr : &frame_; }

private:
    Frame frame_;
};

// ["[SEP]", 102]
std::vector<InsertedToken> token_field(const JsonView& pair) {
    if (!pair.is_array() || pair.size() != 2) pair.refuse(ErrorCode::format, "expected a token and its id");
    return {{static_cast<std::int32_t>(pair.at(std::size_t{1}).integer(id_range)), pair.at(std::size_t{0}).string()}};
}

/// [CLS] and [SEP], and for RoBERTa tighter offsets.
class ClassifierProcessing final : public PostProcessor {
public:
    ClassifierProcessing(const JsonView& description, bool roberta)
        : frame_{token_field(description.at("cls")), token_field(description.at("sep"))},
          trim_(roberta && description.at("trim_offsets").boolean()),
          add_prefix_space_(roberta && description.at("add_prefix_space").boolean()) {}

    void adjust(TextToken& token) const override {
        if (trim_) trim_offsets(token, add_prefix_space_);
    }
    bool adjusts() const override { return trim_; }
    const Frame* frame() const override { return &frame_; }

private:
    Frame frame_;
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

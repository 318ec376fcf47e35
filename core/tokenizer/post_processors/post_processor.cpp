// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/post_processors/post_processor.h"

#include <algorithm>
#include <vector>

namespace headscope::tokenizer {

namespace {

class Sequence final : public PostProcessor {
public:
    explicit Sequence(const JsonView& description) {
        const JsonView members = description.at("processors").array();
        for (std::size_t i = 0; i < members.size(); ++i) {
            auto member = make_post_processor(members.at(i));
            if (member->adds_tokens() && adds_tokens()) {
                throw Error(ErrorCode::unsupported, members.at(i).where(), "expected one processor that adds tokens",
                            "found another one");
            }
            members_.push_back(std::move(member));
        }
    }
    void apply(Draft& draft, bool add_special_tokens) const override {
        for (const auto& member : members_) member->apply(draft, add_special_tokens);
    }
    bool adds_first_token() const override {
        return std::any_of(members_.begin(), members_.end(),
                           [](const auto& member) { return member->adds_first_token(); });
    }
    bool adds_tokens() const override {
        return std::any_of(members_.begin(), members_.end(), [](const auto& member) { return member->adds_tokens(); });
    }

private:
    std::vector<std::unique_ptr<PostProcessor>> members_;
};

}  // namespace

std::unique_ptr<PostProcessor> make_post_processor(const JsonView& description) {
    const JsonView type = description.at("type");
    const std::string name = type.string();
    if (name == "Sequence") return std::make_unique<Sequence>(description);
    if (name == "TemplateProcessing") return make_template(description);
    if (name == "BertProcessing") return make_bert_processing(description);
    if (name == "RobertaProcessing") return make_roberta_processing(description);
    if (name == "ByteLevel") return make_byte_level_processing(description);
    type.refuse(ErrorCode::unsupported, "expected a known post-processor");
}

void surround(Draft& draft, const std::vector<InsertedToken>& before, const std::vector<InsertedToken>& after) {
    Encoding& encoding = draft.encoding;
    const auto count = static_cast<std::int64_t>(encoding.ids.size() + before.size());
    for (auto& respelled : encoding.respelled) respelled.token += static_cast<std::int64_t>(before.size());
    std::vector<Encoding::Respelled> first;
    for (std::size_t i = 0; i < before.size(); ++i) {
        if (draft.spelling(before[i].id) != before[i].name)
            first.push_back({static_cast<std::int64_t>(i), before[i].name});
    }
    encoding.respelled.insert(encoding.respelled.begin(), first.begin(), first.end());
    for (std::size_t i = 0; i < after.size(); ++i) {
        if (draft.spelling(after[i].id) == after[i].name) continue;
        encoding.respelled.push_back({count + static_cast<std::int64_t>(i), after[i].name});
    }
    std::vector<std::int32_t> ids;
    for (const InsertedToken& token : before) ids.push_back(token.id);
    encoding.ids.insert(encoding.ids.begin(), ids.begin(), ids.end());
    for (const InsertedToken& token : after) encoding.ids.push_back(token.id);
    encoding.offsets.insert(encoding.offsets.begin(), before.size(), {0, 0});
    encoding.offsets.insert(encoding.offsets.end(), after.size(), {0, 0});
    encoding.special.insert(encoding.special.begin(), before.size(), 1);
    encoding.special.insert(encoding.special.end(), after.size(), 1);
    draft.begin += before.size();
    draft.end += before.size();
}

}  // namespace headscope::tokenizer

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
            if (member->frame() != nullptr && frame() != nullptr) {
                throw Error(ErrorCode::unsupported, members.at(i).where(), "expected one processor that adds tokens",
                            "found another one");
            }
            members_.push_back(std::move(member));
        }
    }
    void adjust(TextToken& token) const override {
        for (const auto& member : members_) member->adjust(token);
    }
    bool adjusts() const override {
        return std::any_of(members_.begin(), members_.end(), [](const auto& member) { return member->adjusts(); });
    }
    const Frame* frame() const override {
        for (const auto& member : members_) {
            if (const Frame* found = member->frame()) return found;
        }
        return nullptr;
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

}  // namespace headscope::tokenizer

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/post_processors/post_processor.h"

#include <algorithm>
#include <vector>

#include "core/tokenizer/kind.h"

namespace headscope::tokenizer {

namespace {

class Sequence final : public PostProcessor {
public:
    explicit Sequence(const JsonView& description) {
        const JsonView members = description.at("processors").array();
        for (std::size_t i = 0; i < members.size(); ++i) {
            auto member = make_post_processor(members.at(i));
            if (auto* inner = dynamic_cast<Sequence*>(member.get())) {
                for (auto& one : inner->members_) members_.push_back(std::move(one));
            } else {
                members_.push_back(std::move(member));
            }
        }
    }
    void adjust(TextToken& token) const override {
        const bool first = token.is_first;
        for (std::size_t i = 0; i < members_.size(); ++i) {
            token.is_first = first && i < token.first_until;
            members_[i]->adjust(token);
        }
        token.is_first = first;
    }
    bool adjusts() const override {
        return std::any_of(members_.begin(), members_.end(), [](const auto& member) { return member->adjusts(); });
    }
    void arrange(Layout& layout, bool special_tokens) const override {
        for (std::size_t i = 0; i < members_.size(); ++i) {
            members_[i]->arrange(layout, special_tokens);
            for (auto& group : layout) {
                for (std::size_t k = 1; k < group.size(); ++k)
                    group[k].first_until = std::min(group[k].first_until, i + 1);
            }
        }
    }

private:
    std::vector<std::unique_ptr<PostProcessor>> members_;
};

}  // namespace

std::unique_ptr<PostProcessor> make_post_processor(const JsonView& description) {
    const std::string name =
        kind_of(description, {{"RobertaProcessing", {"sep", "cls", "trim_offsets", "add_prefix_space"}},
                              {"BertProcessing", {"sep", "cls"}},
                              {"TemplateProcessing", {"single", "pair", "special_tokens"}}});
    if (name == "Sequence") return std::make_unique<Sequence>(description);
    if (name == "TemplateProcessing") return make_template(description);
    if (name == "BertProcessing") return make_bert_processing(description);
    if (name == "RobertaProcessing") return make_roberta_processing(description);
    if (name == "ByteLevel") return make_byte_level_processing(description);
    description.at("type").refuse(ErrorCode::unsupported, "expected a known post-processor");
}

}  // namespace headscope::tokenizer

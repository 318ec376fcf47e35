// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/evaluate/evaluation_items.h"

namespace headscope::app {

namespace fs = std::filesystem;

ItemLines::ItemLines(const std::string& items, const std::string& prompts, const std::vector<fs::path>& inputs) {
    if (!items.empty()) items_ = std::make_unique<OutputFile>(items, inputs, "items");
    if (!prompts.empty()) prompts_ = std::make_unique<OutputFile>(prompts, inputs, "prompts");
}

void ItemLines::add(const evaluation::AnsweredItem& answered, std::int64_t model) {
    if (items_) items_->append(evaluation::item_line(answered, model, false));
    if (prompts_) prompts_->append(evaluation::item_line(answered, model, true));
}

void ItemLines::publish() {
    if (items_) items_->publish();
    if (prompts_) prompts_->publish();
}

}  // namespace headscope::app

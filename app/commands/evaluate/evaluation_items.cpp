// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/evaluate/evaluation_items.h"

#include <algorithm>

#include "app/commands/context.h"
#include "core/base/error.h"

namespace headscope::app {

namespace fs = std::filesystem;

ItemLines::ItemLines(const std::string& items, const std::string& prompts, const std::string& results,
                     const std::vector<fs::path>& inputs) {
    std::vector<fs::path> names;
    for (const std::string& name : {results, items, prompts}) {
        if (name.empty()) continue;
        std::error_code ignored;
        const fs::path whole = fs::weakly_canonical(name, ignored);
        if (std::find(names.begin(), names.end(), whole) != names.end())
            throw UsageError("-o, --items, --prompts: a name for each is expected; found " + escaped(name) + " twice");
        names.push_back(whole);
    }
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

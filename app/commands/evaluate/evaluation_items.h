// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/base/io/output_file.h"
#include "core/evaluation/harness/answered_item.h"

namespace headscope::app {

/// --items and --prompts: a line of JSON an item, in order. Whole or not at all.
class ItemLines {
public:
    /// Names may be empty: no such file. Throws what OutputFile throws.
    ItemLines(const std::string& items, const std::string& prompts, const std::vector<std::filesystem::path>& inputs);

    void add(const evaluation::AnsweredItem& answered, std::int64_t model);
    void publish();

private:
    std::unique_ptr<OutputFile> items_, prompts_;
};

}  // namespace headscope::app

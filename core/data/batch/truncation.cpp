// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/batch/truncation.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/base/json/json.h"

namespace headscope::data {
namespace {

/// A member of the file of that name: `key` of the object under `inside`, or of the document where that is empty.
std::optional<std::string> text_in(const std::vector<TokenizerFile>& files, const char* name, const std::string& inside,
                                   const char* key, const std::vector<std::string>& known) {
    for (const TokenizerFile& file : files) {
        if (file.name != name) continue;
        const nlohmann::json document = parse_json(file.content, file.name);
        std::optional<JsonView> object = JsonView(document, file.name);
        if (!inside.empty()) object = object->find(inside);
        const auto value = object && object->is_object() ? object->find(key) : std::nullopt;
        if (!value) continue;
        std::string text = value->string();
        if (std::find(known.begin(), known.end(), text) == known.end())
            value->refuse(ErrorCode::format, "expected " + known.front() + " or " + known.back());
        return text;
    }
    return std::nullopt;
}

}  // namespace

std::pair<std::int64_t, std::int64_t> longest_first(std::int64_t first, std::int64_t second, std::int64_t room) {
    if (first + second <= room) return {first, second};
    const bool swapped = first > second;
    std::int64_t shorter = std::min(first, second), longer = std::max(shorter, room - shorter);
    if (shorter + longer > room) {
        shorter = room / 2;
        longer = room - shorter;
    }
    return swapped ? std::pair(longer, shorter) : std::pair(shorter, longer);
}

bool keeps_the_end(const std::vector<TokenizerFile>& files) {
    if (const auto side = text_in(files, "tokenizer_config.json", "", "truncation_side", {"right", "left"}))
        return *side == "left";
    return text_in(files, "tokenizer.json", "truncation", "direction", {"Right", "Left"}) == "Left";
}

}  // namespace headscope::data

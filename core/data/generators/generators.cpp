// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/generators/generators.h"

#include <algorithm>

#include "core/base/error.h"

namespace headscope::data {

void GeneratorOptions::refuse(const std::string& expected, const std::string& found) const {
    throw Error(ErrorCode::usage, "data.generator " + name_, expected, found);
}

void GeneratorOptions::need_length(std::int64_t least, std::int64_t length) const {
    if (length >= least) return;
    refuse("expected a sequence_length of at least " + std::to_string(least), "found " + std::to_string(length));
}

void add_pieces(std::vector<std::string>& pieces, const std::string& prefix, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) pieces.push_back(prefix + std::to_string(i));
}

std::string joined(const std::vector<std::string>& pieces, const std::vector<std::int64_t>& words) {
    std::string text;
    for (const std::int64_t word : words) text += (text.empty() ? "" : " ") + pieces[static_cast<std::size_t>(word)];
    return text;
}

void fill_from(const std::function<void(std::vector<std::int64_t>&)>& next, std::int64_t length, std::int64_t* ids,
               std::int64_t* targets) {
    std::vector<std::int64_t> words;
    while (static_cast<std::int64_t>(words.size()) <= length) next(words);
    std::copy_n(words.begin(), length, ids);
    std::copy_n(words.begin() + 1, length, targets);
}

}  // namespace headscope::data

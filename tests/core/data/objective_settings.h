// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Settings of data of objectives, hashed words, and rows of batches as text.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/data/data_set.h"
#include "core/tokenizer/hashed/word_tokenizer.h"

namespace headscope::test {

using Ids = std::vector<std::int64_t>;

inline data::DataSettings settings_of(const std::string& objective, std::vector<std::string> text,
                                      std::int64_t length) {
    data::DataSettings settings;
    settings.text = std::move(text);
    settings.sequence_length = length;
    settings.validation = 0;
    settings.objective.kind = objective;
    return settings;
}

inline data::DataSettings generated(const std::string& objective, const std::string& name, std::int64_t length) {
    data::DataSettings settings = settings_of(objective, {}, length);
    settings.generator = data::GeneratorSettings{name, {}};
    settings.validation = 0.5;
    return settings;
}

inline data::HashedWords words(tokenizer::EmbeddingKind kind, std::int64_t bits, std::int64_t rows = 0,
                               const std::string& key = "en") {
    tokenizer::HashSettings settings;
    settings.kind = kind;
    settings.hash =
        kind == tokenizer::EmbeddingKind::characters ? tokenizer::WordHashKind::none : tokenizer::WordHashKind::md5;
    settings.bits = bits;
    settings.rows = rows;
    settings.key = key;
    return {std::make_shared<tokenizer::WordTokenizer>(std::make_shared<tokenizer::WordHash>(settings)), {}};
}

inline Ids row(const Ids& all, const data::DataBatch& batch, std::int64_t index) {
    const auto begin = all.begin() + index * batch.length;
    return {begin, begin + (batch.lengths.empty() ? batch.length : batch.lengths[static_cast<std::size_t>(index)])};
}

inline std::string bytes_of(const Ids& ids) {
    std::string text;
    for (const std::int64_t id : ids) text += id < 256 ? std::string(1, static_cast<char>(id)) : "|";
    return text;
}

}  // namespace headscope::test

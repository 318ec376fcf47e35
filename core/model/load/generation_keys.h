// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Every key of transformers' GenerationConfig (5.23) and its use here. A key that is in no list below is none of
// transformers': it sets nothing there either, and is not read.

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>

namespace headscope::model {

enum class KeyUse {
    obeyed,                ///< read into GenerationSettings
    without_effect,        ///< does not change an answer of this program
    refused,               ///< an active value is an error of every answer
    refused_when_sampling  ///< an active value is an error of a sampled answer; others do not read it
};

struct GenerationKey {
    std::string_view name;
    KeyUse use;
    std::string_view neutral;  ///< JSON of the value that means the same as an absent key; empty: null alone
    std::string_view note;     ///< without_effect: the reason; refused: the expected value
};

std::span<const GenerationKey> generation_keys();

/// Null for a name that is not transformers'.
const GenerationKey* find_generation_key(std::string_view name);

/// True if the value differs from an absent key.
bool is_active(const GenerationKey& key, const nlohmann::json& value);

}  // namespace headscope::model

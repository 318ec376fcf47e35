// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Use of each key of tokenizer_config.json that transformers' tokenizers (5.23) read. Threads: any.

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>

#include "core/base/json/json.h"

namespace headscope::tokenizer {

enum class KeyUse {
    obeyed,    ///< read here, or by a reader of the folder's files
    harmless,  ///< changes no id, no type and no text
    refused    ///< unless it has the value that changes nothing
};

struct SettingsKey {
    std::string_view name;
    KeyUse use;
    std::string_view why;
};

/// Every key, sorted by name.
std::span<const SettingsKey> settings_keys();

/// Applies to a tokenizer.json what transformers lets tokenizer_config.json decide over it: the class that it takes
/// builds its normalizer or pre-tokenizer from these keys. Error(unsupported) for a refused key.
void apply_settings(const JsonView& tokenizer_config, const JsonView& config, nlohmann::json& document);

}  // namespace headscope::tokenizer

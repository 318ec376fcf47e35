// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json.hpp>

namespace headscope::checkpoint {

/// A tokenizer that a weight file holds, as the files of a folder describe it.
struct TokenizerDocuments {
    nlohmann::json tokenizer;  ///< tokenizer.json
    nlohmann::json settings;   ///< tokenizer_config.json
};

}  // namespace headscope::checkpoint

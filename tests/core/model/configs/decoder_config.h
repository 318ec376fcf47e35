// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Small configurations of decoders, and the errors that they give.

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/core/base/error_matcher.h"
#include "tests/core/model/configs/family_config.h"

namespace headscope::test::decoders {

/// Only what every file has.
inline nlohmann::json least(const std::string& type, std::int64_t heads = 16) {
    if (type == "gptj") {
        return {{"model_type", type}, {"vocab_size", 99}, {"n_embd", 128 * heads}, {"n_layer", 2}, {"n_head", heads}};
    }
    return {{"model_type", type},      {"vocab_size", 99},       {"hidden_size", 24 * heads},
            {"intermediate_size", 77}, {"num_hidden_layers", 2}, {"num_attention_heads", heads}};
}

inline nlohmann::json with(nlohmann::json config, const std::string& key, const nlohmann::json& value) {
    config[key] = value;
    return config;
}

inline void refuses(const nlohmann::json& config, ErrorCode code, const std::string& part) {
    CAPTURE(part);
    CHECK_THROWS_MATCHES(read(config), Error, IsError(code, part));
}

}  // namespace headscope::test::decoders

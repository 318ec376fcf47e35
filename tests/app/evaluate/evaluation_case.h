// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A text to score, and rows of the JSON that `evaluate` prints.

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

namespace headscope::testing {

inline constexpr const char* kText =
    "In the beginning God created the heaven and the earth. And God said, Let there be light.";

/// The first row of a metric at a length; null without one.
inline const nlohmann::json* row_of(const nlohmann::json& document, const std::string& metric, std::int64_t length) {
    for (const auto& row : document.at("results"))
        if (row.at("metric") == metric && row.at("length") == length) return &row;
    return nullptr;
}

}  // namespace headscope::testing

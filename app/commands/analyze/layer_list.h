// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace headscope::app {

/// "0,2,5-8" -> {0, 2, 5, 6, 7, 8}. At most 100 000 of them: the rest is the model's to refuse. Throws UsageError that
/// names the option.
std::set<int> parse_layers(const std::string& option, const std::string& text);

/// Throws Error (limit) for a layer that a model of `count` layers lacks.
void check_layers(const std::string& option, const std::set<int>& layers, std::int64_t count);

/// "128,256,512" -> numbers from 1 on. Throws UsageError that names the option.
std::vector<std::int64_t> parse_lengths(const std::string& option, const std::string& text);

}  // namespace headscope::app

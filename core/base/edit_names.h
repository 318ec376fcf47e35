// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Names of the values of a forward pass that can be edited, and of the edits: of files, options, probes and the window.

#include <array>
#include <string_view>

namespace headscope {

/// In the order of the computation, as model::Point.
inline constexpr std::array<std::string_view, 15> kPointNames{"embedding",
                                                              "residual_before",
                                                              "query",
                                                              "key",
                                                              "value",
                                                              "scores",
                                                              "pattern",
                                                              "head_output",
                                                              "mixer_output",
                                                              "attention_output",
                                                              "residual_middle",
                                                              "feed_forward_input",
                                                              "feed_forward_output",
                                                              "hidden",
                                                              "final_norm"};

/// As model::Action.
inline constexpr std::array<std::string_view, 8> kActionNames{"zero", "mean", "reference", "run",
                                                              "add",  "set",  "forbid",    "uniform"};

}  // namespace headscope

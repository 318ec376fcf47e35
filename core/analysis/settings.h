// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Options of an analysis, as its file stores them (root attribute "settings"): one list for command line and window.
// docs/file-formats.md names the keys.

#include <cstdint>
#include <string>
#include <vector>

#include "core/analysis/input.h"
#include "core/checkpoint/adapter.h"
#include "core/model/segments.h"

namespace headscope::analysis {

struct Settings {
    std::string model;  ///< as it was named
    std::size_t texts = 0;
    std::vector<std::string> files, tokens, examples, target_tokens;
    std::string labels{};  ///< empty: none
    std::size_t targets = 0, pairs = 0;
    std::vector<std::string> record;
    std::string layers, skip, switch_off, switch_off_how = "zero";
    bool maps_int16 = false;
    std::string dtype = "float32", kernels = "auto";
    int threads = 0;
    std::string bos = "auto";
    std::int64_t length = 0;
    model::Segments segments;
    bool windows = false, repeat_token = false, chat = false, beyond_positions = false, all_rows = false;

    const checkpoint::Adapter* adapter = nullptr;  ///< merged into the model; null: none

    /// `input`: what was read of the texts.
    std::string json(const Input& input) const;
};

}  // namespace headscope::analysis

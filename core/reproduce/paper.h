// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What "Deconstructing Attention" printed of its 500M models, to stand beside what was measured: Table 1 (WikiText,
// LAMBADA, mean accuracy of seven tasks) and Table 4 (WikiText perplexity by context length).

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace headscope::reproduce {

struct PaperModel {
    std::string_view mixer;           ///< "standard", "mlp", ...
    std::string_view configuration;   ///< "standard", "uniform", "hybrid", "skip"
    double accuracy = 0;              ///< mean of the NLU tasks, per cent; random guess 39.9
    double wikitext = 0;              ///< perplexity
    double lambada = 0;               ///< accuracy, per cent
    std::array<double, 5> context{};  ///< Table 4, lengths 128 to 2048; 0 where it has no row
};
const std::vector<PaperModel>& paper_models();
/// Null when the paper has no such row.
const PaperModel* paper_model(std::string_view mixer, std::string_view configuration);

inline constexpr std::array<int, 5> kPaperLengths{128, 256, 512, 1024, 2048};

/// The seven mixers in the paper's order, "standard" first, and how the paper calls them.
struct PaperMixer {
    std::string_view name, label;
};
const std::vector<PaperMixer>& paper_mixers();
std::string label_of(std::string_view mixer);

}  // namespace headscope::reproduce

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headscope::model {

/// The place of a model's weights between two uses. The results are equal bit for bit.
enum class Residence {
    float32,  ///< in memory, in the type that the model computes in
    file,     ///< in memory, in the file's type; a layer's are converted when the layer runs
    stream,   ///< on the disk; a layer's are read when the layer runs, the next one's meanwhile
};
/// In the order of preference.
inline constexpr Residence kResidences[] = {Residence::float32, Residence::file, Residence::stream};
/// Help of the option --weights.
inline constexpr const char* kResidenceHelp =
    "Where weights stay: float32 (in memory), file (in memory as the file has them), stream (on the disk); auto: the "
    "first that fits";

/// Tokens of a pass, which decide how the weights of a layer are held while it runs.
enum class PassSize {
    few,  ///< at most kFewTokens: quantized matrices are multiplied as stored
    some,
    many,  ///< kManyTokens: activations of mixers and weights of a feed-forward take turns in memory
};
inline constexpr std::int64_t kManyTokens = 2048;

/// Sizes of the tensors that a model uses, each counted once.
struct WeightSizes {
    double stored = 0;        ///< bytes in the file
    double layer_stored = 0;  ///< the same of the largest layer
    double layer = 0;         ///< its numbers
    double buffer = 0;        ///< most numbers of a layer that are converted at once: of mixers, or of a feed-forward
    double table_stored = 0;  ///< bytes in the file of the largest table that is read by rows (words)
    double tables_kept = 0;   ///< bytes in the file of quantized tables, and of LoRA's A and B: they stay in memory
    double merged = 0;        ///< bytes in the files of the largest tensor that LoRA changes
    double rest = 0;          ///< numbers of what belongs to neither
};

std::string_view name(Residence residence);
/// "auto" and the names, for options.
std::vector<std::string> residence_choices();
/// Empty for "auto".
std::optional<Residence> residence(std::string_view name);

}  // namespace headscope::model

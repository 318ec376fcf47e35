// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/checkpoint/save.h"

namespace headscope::checkpoint {

/// Changes that convert() makes.
struct ConvertChanges {
    const nlohmann::json* config = nullptr;  ///< in place of the source's
    std::set<std::string> left_out;          ///< tensors that are not written
    std::vector<OutputTensor> added;         ///< tensors that the source lacks
};

/// The type that convert() writes where `asked` is asked for: quantized tensors become float32, not stored ones.
LoadAs written_as(const Checkpoint& source, LoadAs asked);

/// convert() of save.h with changes.
void convert(const Checkpoint& source, const std::filesystem::path& destination, LoadAs as,
             const ConvertChanges& changes, Progress& progress, const Cancellation& cancellation,
             std::uint64_t shard_bytes = SaveRequest{}.shard_bytes);

}  // namespace headscope::checkpoint

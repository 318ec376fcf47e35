// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/types/state_sizes.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/mixers/types/linear_attention.h"
#include "core/mixers/types/mamba2.h"

namespace headscope::mixers {

StateSizes state_sizes(const MixerType& type, const MixerOptions& options, std::int64_t heads, std::int64_t head_size) {
    const auto has = [&type](std::string_view key) {
        return std::any_of(type.options.begin(), type.options.end(),
                           [key](const Option& own) { return key == own.name; });
    };
    const auto whole = [&](std::string_view key, std::int64_t otherwise) {
        const auto said = has(key) ? options.get<std::int64_t>(type, key) : 0;
        return said > 0 ? said : otherwise;
    };
    StateSizes sizes;
    sizes.taps = whole(kTaps.name, 0);
    sizes.key_size = whole(kOwnKeySize.name, head_size);
    if (&type == &kMamba2) {
        sizes.value_size = static_cast<double>(sizes.key_size);
        sizes.key_size = whole("state_size", 0);
        sizes.heads = whole(kOwnHeads.name, 2 * heads);
        sizes.query_heads = sizes.groups = whole("num_groups", 1);
        return sizes;
    }
    sizes.query_heads = whole(kOwnHeads.name, heads);
    sizes.heads = whole(kOwnValueHeads.name, sizes.query_heads);
    sizes.groups = whole(kOwnKeyValueHeads.name, sizes.query_heads);
    const double expanded = has(kExpandValue.name) ? options.get<double>(type, kExpandValue.name) : 1;
    sizes.value_size = static_cast<double>(sizes.key_size) * expanded;
    return sizes;
}

void check_state_sizes(const MixerType& type, const StateSizes& sizes) {
    const bool mamba = &type == &kMamba2;
    const auto number = [](std::int64_t value) { return static_cast<double>(value); };
    const std::pair<const char*, double> all[] = {
        {mamba ? "num_groups" : "num_heads", number(sizes.query_heads)},
        {mamba ? "num_heads" : "num_value_heads", number(sizes.heads)},
        {mamba ? "state_size" : "head_dim", number(sizes.key_size)},
        {mamba ? "head_dim" : "expand_v", sizes.value_size},
    };
    for (const auto& [key, value] : all) {
        if (value <= number(kMostOfState)) continue;
        throw Error(ErrorCode::mismatch, std::string("mixers.") + type.name + "." + key,
                    "expected heads, keys and values of at most 2^26 = " + std::to_string(kMostOfState) + " numbers",
                    "found " + std::to_string(static_cast<std::int64_t>(value)));
    }
}

}  // namespace headscope::mixers

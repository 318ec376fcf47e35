// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// PEFT's adapter_config.json. Errors: headscope::Error with the key. Threads: any.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace headscope::checkpoint {

inline constexpr std::uint64_t largest_adapter_config = 16U << 20U;

struct AdapterConfig {
    std::string base, task;
    std::int64_t rank = 8;
    double alpha = 8;
    bool rank_stabilized = false, fan_in_fan_out = false;
    bool ties_weights = false;             ///< ensure_weight_tying
    std::vector<std::string> saved_whole;  ///< modules_to_save
    std::map<std::string, std::int64_t> ranks;
    std::map<std::string, double> alphas;
    std::string where;  ///< the file, for errors

    bool operator==(const AdapterConfig&) const = default;

    std::int64_t rank_of(const std::string& module) const;
    /// Factor of B A before it is added to the weight.
    double scale_of(const std::string& module) const;
    /// modules_to_save names it: the copy is the adapter's, and what is tied to the base's keeps that.
    bool saves_whole(const std::string& module) const;
};

/// Refuses, by its key, what changes the computation and is not built.
AdapterConfig read_adapter_config(const std::filesystem::path& path);

}  // namespace headscope::checkpoint

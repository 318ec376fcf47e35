// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Rates of analyses that ran on this machine, kept in the user's cache by the shape of the model, its type and the
// threads: what the next estimate is made of. Threads: any, each with a book of its own.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/analysis/estimate.h"

namespace headscope::analysis {

/// Properties of an analysis that decide its rate.
struct RateShape {
    std::int64_t layers = 0, hidden = 0, feed_forward = 0, heads = 0, vocabulary = 0;
    std::int64_t tokens = 0;  ///< of the longest sequence
    bool recorded = false;    ///< maps, states or more are stored
    bool bfloat16 = false;
    int threads = 1;

    bool operator==(const RateShape&) const = default;
};
RateShape rate_shape(const model::Inspection& inspection, const AnalysisRequest& request, bool bfloat16, int threads);

class RateBook {
public:
    /// Adds a run that took `seconds` for Estimate::multiplications. Ignores runs below a tenth of a second. Keeps the
    /// latest run of a shape, and the last kMost shapes.
    void add(const RateShape& shape, double multiplications, double seconds);
    /// That of the nearest shape with the same type and threads; empty where none is near: sizes that differ by more
    /// than a factor of eight say nothing of each other.
    std::optional<Rate> find(const RateShape& shape) const;

    /// A file that is none of ours, or of another processor, is an empty book. Never throws.
    static RateBook read(const std::filesystem::path& path, const std::string& processor);
    /// Throws Error io.
    void write(const std::filesystem::path& path, const std::string& processor) const;

    /// Rates of this machine from the user's cache; empty without one.
    static RateBook own();
    /// Adds a run to it. A cache that cannot be written is done without.
    static void keep(const RateShape& shape, double multiplications, double seconds);

    static constexpr std::size_t kMost = 64;

private:
    struct Entry {
        RateShape shape;
        double rate = 0;
    };
    std::vector<Entry> entries_;  ///< the latest last
};

}  // namespace headscope::analysis

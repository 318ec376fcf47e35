// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Requests of made-up sequences, their files, and the numbers of two files.

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "core/analysis/request.h"
#include "core/base/progress.h"
#include "core/model/model.h"
#include "core/store/analysis/analysis_file.h"

namespace headscope::tests {

inline constexpr double float_epsilon = 1.2e-7;

inline store::SequenceTokens sequence(std::int64_t length, std::int32_t start) {
    store::SequenceTokens tokens;
    for (std::int64_t i = 0; i < length; ++i) {
        tokens.ids.push_back(static_cast<std::int32_t>((start + 3 * i + i * i) % 40));
        tokens.pieces.push_back("t" + std::to_string(tokens.ids.back()));
        tokens.offsets.push_back({0, 0});
    }
    return tokens;
}

inline analysis::AnalysisRequest request_for(const std::vector<std::int64_t>& lengths) {
    analysis::AnalysisRequest request;
    for (const std::int64_t length : lengths) {
        request.sequences.push_back(sequence(length, static_cast<std::int32_t>(request.sequences.size())));
    }
    return request;
}

inline std::shared_ptr<store::AnalysisFile> analyse(model::Model& model, const analysis::AnalysisRequest& request,
                                                    const std::filesystem::path& path) {
    NoProgress progress;
    const Cancellation cancellation;
    analysis::run(model, request, path, {}, progress, cancellation);
    return store::AnalysisFile::open(path);
}

inline std::size_t files_in(const std::filesystem::path& folder) {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

/// Every indicator, histogram and thumbnail of two files, sequence a of one and b of the other.
inline void require_same_numbers(const store::AnalysisFile& one, std::int64_t a, const store::AnalysisFile& other,
                                 std::int64_t b) {
    const auto n = one.header().sites.size();
    for (const std::string& name : one.indicators()) {
        const auto x = one.indicator(name), y = other.indicator(name);
        const std::size_t cells = x.data.size() / one.header().sequences.size();
        INFO(name);
        for (std::size_t i = 0; i < cells; ++i) {
            const double u = x.data[static_cast<std::size_t>(a) * cells + i],
                         v = y.data[static_cast<std::size_t>(b) * cells + i];
            REQUIRE(std::isnan(u) == std::isnan(v));
            // The projections' GEMM may round otherwise for another batch size; 64 operations deep.
            if (!std::isnan(u)) REQUIRE(u == Approx(v).epsilon(64 * float_epsilon).margin(64 * float_epsilon));
        }
    }
    for (std::size_t site = 0; site < n; ++site) {
        const auto x = one.column_mass(a, static_cast<std::int64_t>(site));
        const auto y = other.column_mass(b, static_cast<std::int64_t>(site));
        const auto length = one.header().sequences[static_cast<std::size_t>(a)].ids.size();
        for (std::size_t h = 0; h < 4; ++h) {
            for (std::size_t j = 0; j < length; ++j) {
                const double u = x.data[h * static_cast<std::size_t>(x.shape[1]) + j];
                const double v = y.data[h * static_cast<std::size_t>(y.shape[1]) + j];
                REQUIRE(std::isnan(u) == std::isnan(v));  // sites without a matrix
                if (!std::isnan(u)) REQUIRE(u == Approx(v).margin(64 * float_epsilon));
            }
        }
    }
}

}  // namespace headscope::tests

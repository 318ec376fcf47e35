// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Shared by tests of recipes: synthetic analysis files in a folder of their own, refusals, notes.

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/figures/make_figure.h"
#include "core/store/analysis/analysis_file.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"

namespace headscope::tests {

class FigureFiles : public test::TemporaryFolder {
public:
    std::shared_ptr<store::AnalysisFile> analysis(const std::string& name, const SyntheticAnalysis& wish) const {
        const auto path = *this / (name + ".headscope.h5");
        write_synthetic_analysis(path, wish);
        return store::AnalysisFile::open(path);
    }
    /// A file of another text than the synthetic ones.
    std::shared_ptr<store::AnalysisFile> analysis(const std::string& name, SyntheticAnalysis wish,
                                                  const store::SequenceTokens& tokens) const {
        const auto path = *this / (name + ".headscope.h5");
        wish.lengths = {std::ssize(tokens.ids)};
        auto header = synthetic_header(wish);
        header.sequences = {tokens};
        store::AnalysisWriter writer(path, header);
        for (std::int32_t layer = 0; layer < wish.layers; ++layer) write_synthetic_layer(writer, wish, 0, layer);
        write_synthetic_output(writer, wish, 0);
        writer.publish();
        return store::AnalysisFile::open(path);
    }
};

inline std::string refusal(const std::string& recipe, const std::vector<std::shared_ptr<store::AnalysisFile>>& files,
                           const figures::FigureOptions& options = {}) {
    try {
        figures::make_figure(recipe, files, options);
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::usage);
        return error.what();
    }
    return "";
}

inline bool noted(const figures::FigureData& figure, const std::string& words) {
    return std::any_of(figure.notes.begin(), figure.notes.end(),
                       [&](const std::string& note) { return note.find(words) != std::string::npos; });
}

inline std::size_t lines(const std::string& text) {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace headscope::tests

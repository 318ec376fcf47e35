// SPDX-License-Identifier: GPL-3.0-or-later
// What analyses are called in titles, legends and notes.
#include <catch2/catch.hpp>

#include "core/base/error.h"
#include "core/figures/analysis_labels.h"
#include "core/figures/make_figure.h"
#include "core/figures/recipe.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"

using namespace headscope;
using namespace headscope::figures;

namespace {

store::AnalysisHeader header_of(const std::string& model, const std::string& text, const std::string& off = "") {
    store::AnalysisHeader header;
    header.model_name = model;
    header.sequences.resize(1);
    header.sequences[0].text = text;
    header.settings_json = off.empty() ? "{}" : R"({"switch_off": ")" + off + R"("})";
    return header;
}

std::vector<std::string> labels(const std::vector<store::AnalysisHeader>& headers,
                                const std::vector<std::string>& files, const std::vector<std::string>& given = {}) {
    std::vector<UnnamedAnalysis> analyses;
    for (std::size_t i = 0; i < headers.size(); ++i)
        analyses.push_back({&headers[i], files[i], given.empty() ? "" : given[i]});
    return analysis_labels(analyses);
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("A model's name is the name of its analysis, with the file's where two are of one model",
          "[figures][names]") {
    const auto a = header_of("gpt2", "one"), b = header_of("llama", "one");
    CHECK(labels({a, b}, {"x-20261128-093012.headscope.h5", "y.headscope.h5"}) == Words{"gpt2", "llama"});
    CHECK(labels({a, a, b}, {"x.headscope.h5", "y.headscope.h5", "z.headscope.h5"}) ==
          Words{"gpt2 (x)", "gpt2 (y)", "llama"});
}

TEST_CASE("A time in a file's name is no name: texts, heads switched off or numbers are", "[figures][names]") {
    const Words files{"gpt2-20261128-093012.headscope.h5", "gpt2-20261128-093012-2.headscope.h5"};
    const auto wind = header_of("gpt2", "The wind\nof the light sea and much more"),
               night = header_of("gpt2", "By night");
    CHECK(labels({wind, night}, files) == Words{"gpt2, “The wind of the light…”", "gpt2, “By night”"});
    CHECK(labels({night, header_of("gpt2", "By night", "0.3")}, files) == Words{"gpt2", "gpt2 without head 0.3"});
    CHECK(labels({header_of("gpt2", "By night", "0.3,2.1"), night}, files) ==
          Words{"gpt2 without heads 0.3,2.1", "gpt2"});
    CHECK(labels({night, night}, files) == Words{"gpt2 (1)", "gpt2 (2)"});
    CHECK(labels({header_of("", "By night")}, {files[0]}) == Words{"gpt2-20261128-093012"});
}

TEST_CASE("Names that are given win, and the others are named beside each other", "[figures][names]") {
    const auto a = header_of("gpt2", "one");
    const Words files{"gpt2-20261128-093012.headscope.h5", "gpt2-20261128-093013.headscope.h5"};
    CHECK(labels({a, a}, files, {"", "pruned"}) == Words{"gpt2", "pruned"});
    CHECK(labels({a, a}, files, {"whole", "pruned"}) == Words{"whole", "pruned"});
}

TEST_CASE("Figures take a name for each file, and no other number of names", "[figures][names]") {
    const test::TemporaryFolder folder;
    tests::SyntheticAnalysis a;
    tests::write_synthetic_analysis(folder / "a.headscope.h5", a);
    tests::write_synthetic_analysis(folder / "b.headscope.h5", a);
    const std::vector files{store::AnalysisFile::open(folder / "a.headscope.h5"),
                            store::AnalysisFile::open(folder / "b.headscope.h5")};
    FigureOptions options;
    options.names = {"whole", "pruned"};
    CHECK(make_figure("radar", files, options).notes[0].starts_with("whole, 24 tokens; pruned, 24 tokens"));
    options.indicator = "sink";
    CHECK(make_figure("difference", files, options).title.find("pruned minus whole") != std::string::npos);
    options.names = {"whole"};
    CHECK_THROWS_MATCHES(make_figure("radar", files, options), Error,
                         test::IsError(ErrorCode::usage, "a name for each of the 2 files"));
}

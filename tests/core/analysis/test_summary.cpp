// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <cmath>

#include "core/analysis/summary.h"
#include "core/store/analysis/analysis_file.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"

using namespace headscope;

TEST_CASE("The table holds means over heads and sequences, and dashes where nothing was measured", "[analysis]") {
    tests::SyntheticAnalysis a;
    a.lengths = {24, 17};
    a.measured_layers = {0, 2};
    const test::TemporaryFolder folder;
    tests::write_synthetic_analysis(folder / "a.headscope.h5", a);
    const auto summary = analysis::summarise(*store::AnalysisFile::open(folder / "a.headscope.h5"));
    REQUIRE(summary.rows.size() == 3);
    REQUIRE(summary.columns.at(3) == "sink");
    REQUIRE(summary.columns.at(6) == "local_focus_2");
    double sink = 0, focus = 0;
    for (std::int64_t s = 0; s < 2; ++s) {
        const auto st = tests::synthetic_statistics(a, a.lengths[static_cast<std::size_t>(s)], 2,
                                                    a.seed + 17 * static_cast<std::uint64_t>(s));
        for (std::size_t h = 0; h < 4; ++h) {
            sink += st.sink[h] / 8;
            focus += st.local_focus[h * 4 + 2] / 8;
        }
    }
    CHECK(summary.rows[2].values[3] == Approx(sink));
    CHECK(summary.rows[2].values[6] == Approx(focus));
    CHECK(std::isnan(summary.rows[1].values[0]));
    CHECK(summary.loss.size() == 2);
    const std::string text = analysis::summary_text(summary);
    CHECK(std::count(text.begin(), text.end(), '\n') == 4);
    CHECK(text.find(" -") != std::string::npos);
}

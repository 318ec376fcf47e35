// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <cmath>

#include "core/base/error.h"
#include "core/store/analysis/analysis_file.h"
#include "core/workspace/head_changes.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"

using namespace headscope;
using namespace headscope::workspace;
using test::IsError;

namespace {

const double kNan = std::nan("");

/// `values` by rows, one head a row.
HeadTable table(std::vector<std::string> columns, std::vector<double> values) {
    HeadTable made;
    const std::size_t rows = values.size() / columns.size();
    for (std::size_t row = 0; row < rows; ++row)
        made.rows.push_back({static_cast<std::int64_t>(row / 2), static_cast<std::int32_t>(row / 2),
                             static_cast<std::int32_t>(row % 2), 0, "", ""});
    made.columns = std::move(columns);
    made.values = std::move(values);
    return made;
}

}  // namespace

TEST_CASE("Heads are ranked by how far they moved, in deviations of each measure", "[workspace][changes]") {
    const HeadTable before = table({"sink", "entropy"}, {0.1, 10, 0.2, 20, 0.3, 30, 0.4, 40});
    const HeadTable after = table({"sink", "entropy"}, {0.1, 10, 0.5, 20, 0.3, 90, 0.3, 35});
    const HeadChanges changes = head_changes(before, after, 2.5, 3.0);
    REQUIRE(changes.measures == std::vector<std::string>{"sink", "entropy"});
    // By hand: over eight values each, mean 0.275 and 31.875, squares 0.135 and 4696.875.
    CHECK(changes.deviation[0] == Approx(std::sqrt(0.135 / 7)).epsilon(1e-12));
    CHECK(changes.deviation[1] == Approx(std::sqrt(4696.875 / 7)).epsilon(1e-12));
    CHECK(changes.change(1, 0) == Approx(0.3));
    CHECK(changes.change(2, 1) == 60);
    CHECK(changes.score[0] == 0);
    CHECK(changes.score[1] == Approx(0.3 / std::sqrt(0.135 / 7)));
    CHECK(changes.score[2] == Approx(60 / std::sqrt(4696.875 / 7)));
    CHECK(changes.score[3] ==
          Approx(std::hypot(0.1 / std::sqrt(0.135 / 7), 5 / std::sqrt(4696.875 / 7))).epsilon(1e-12));
    CHECK(changes.largest == std::vector<std::size_t>{HeadChanges::kNoMeasure, 0, 1, 0});
    CHECK(changes.ranking == std::vector<std::size_t>{2, 1, 3, 0});
    CHECK((changes.loss_before == 2.5 && changes.loss_after == 3.0));
}

TEST_CASE("Measures that do not exist or do not vary are left out of scores", "[workspace][changes]") {
    const std::vector<std::string> columns{"sink", "virtual_sink", "above_1000", "sparsity", "induction"};
    const HeadTable before = table(columns, {0.1, kNan, 7, 1e-9, kNan, 0.2, kNan, 7, -1e-9, 0.5});
    // Rounding alone moves sparsity; induction exists for one head of each table only, not for the same.
    const HeadTable after = table(columns, {0.4, kNan, 7, 2e-8, 0.5, 0.2, kNan, 7, 3e-8, kNan});
    const HeadChanges changes = head_changes(before, after);
    CHECK(std::isnan(changes.deviation[1]));
    CHECK(changes.deviation[2] == 0);
    CHECK(changes.deviation[3] == 0);
    CHECK(changes.deviation[4] == 0);
    CHECK(changes.score[0] == Approx(0.3 / changes.deviation[0]));
    CHECK(changes.largest[0] == 0);
    CHECK(changes.score[1] == 0);
    CHECK((std::isnan(changes.change(0, 1)) && std::isnan(changes.change(1, 4)) && changes.change(0, 2) == 0));
    CHECK_FALSE(changes.loss_before);
}

TEST_CASE("Heads that do not exist rank last and spoil nothing", "[workspace][changes]") {
    const double infinity = std::numeric_limits<double>::infinity();
    const HeadTable before = table({"sink", "score_minimum"}, {kNan, kNan, 0.1, -3, 0.2, -infinity, 0.3, -4});
    const HeadTable after = table({"sink", "score_minimum"}, {0.9, kNan, 0.1, -3, kNan, kNan, 0.5, -4});
    const HeadChanges changes = head_changes(before, after);
    CHECK(std::isnan(changes.score[0]));
    CHECK(changes.score[1] == 0);
    CHECK(std::isnan(changes.score[2]));
    CHECK((changes.score[3] > 0 && std::isfinite(changes.score[3])));
    CHECK(changes.ranking == std::vector<std::size_t>{3, 1, 0, 2});
    CHECK(changes.largest[2] == HeadChanges::kNoMeasure);
}

TEST_CASE("Equal tables have no changes, one head is enough, and none at all too", "[workspace][changes]") {
    const HeadTable same = table({"sink", "entropy"}, {0.1, 10, 0.2, 20, kNan, kNan, 0.4, 40});
    const HeadChanges none = head_changes(same, same);
    CHECK((none.score[0] == 0 && none.score[3] == 0 && std::isnan(none.score[2])));
    CHECK(none.ranking == std::vector<std::size_t>{0, 1, 3, 2});

    const HeadChanges one = head_changes(table({"sink"}, {0.25}), table({"sink"}, {0.75}));
    CHECK(one.score[0] == Approx(std::sqrt(2.0)));  // the deviation of two values is their distance over that
    CHECK(one.largest[0] == 0);
    const HeadChanges still = head_changes(table({"sink"}, {0.25}), table({"sink"}, {0.25}));
    CHECK(still.score == std::vector<double>{0});

    const HeadChanges empty = head_changes(HeadTable(), HeadTable());
    CHECK((empty.ranking.empty() && empty.measures.empty()));
    const HeadChanges apart = head_changes(table({"sink"}, {1, 2}), table({"entropy"}, {1, 2}));
    CHECK((apart.measures.empty() && std::isnan(apart.score[0]) && apart.ranking.size() == 2));
}

TEST_CASE("Columns are matched by name, and tables of other heads are refused", "[workspace][changes]") {
    const HeadTable before = table({"sink", "softmax_fraction", "entropy"}, {0.1, 1, 10, 0.2, 1, 20});
    const HeadTable after = table({"entropy", "sink"}, {11, 0.1, 20, 0.3});
    const HeadChanges changes = head_changes(before, after);
    CHECK(changes.measures == std::vector<std::string>{"sink", "entropy"});
    CHECK(changes.change(0, 1) == 1);
    CHECK(changes.change(1, 0) == Approx(0.1));
    CHECK_THROWS_MATCHES(head_changes(before, table({"sink"}, {1, 2, 3})), Error,
                         IsError(ErrorCode::usage, "the same heads in both, 2 of them; found 3"));
    HeadTable other = after;
    other.rows[1].head = 5;
    CHECK_THROWS_MATCHES(head_changes(before, other), Error, IsError(ErrorCode::usage, "found others"));
}

TEST_CASE("The mean loss is over the tokens of one sequence or of all", "[workspace][changes]") {
    tests::SyntheticAnalysis a;
    a.lengths = {3, 2};
    const test::TemporaryFolder folder;
    tests::write_synthetic_analysis(folder / "a.headscope.h5", a);
    const auto file = store::AnalysisFile::open(folder / "a.headscope.h5");
    CHECK(*mean_loss(*file, 0) == Approx((6.0 + 4.0) / 2));
    CHECK(*mean_loss(*file, 1) == Approx(6.0));
    CHECK(*mean_loss(*file, std::nullopt) == Approx((6.0 + 4.0 + 6.0) / 3));
    CHECK_THROWS_AS(mean_loss(*file, 2), Error);
    store::AnalysisWriter writer(folder / "b.headscope.h5", tests::synthetic_header(a));
    CHECK_FALSE(mean_loss(*store::AnalysisFile::open(writer.partial_path()), std::nullopt));
}

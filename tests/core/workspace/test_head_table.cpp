// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "core/figures/table.h"
#include "core/store/analysis/analysis_file.h"
#include "core/workspace/head_filter.h"
#include "core/workspace/head_table.h"
#include "core/workspace/measures.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"
#include "tests/core/store/synthetic_recurrent.h"

using namespace headscope;
using namespace headscope::workspace;
using headscope::test::IsError;

namespace {

tests::SyntheticAnalysis two_sequences() {
    tests::SyntheticAnalysis a;
    a.lengths = {24, 17};
    return a;
}

std::shared_ptr<store::AnalysisFile> write(const test::TemporaryFolder& folder, const tests::SyntheticAnalysis& a) {
    const auto path = folder / "a.headscope.h5";
    tests::write_synthetic_analysis(path, a);
    return store::AnalysisFile::open(path);
}

}  // namespace

TEST_CASE("Heads are filtered by their softmax fraction, of layers that have one", "[workspace]") {
    const test::TemporaryFolder folder;
    tests::write_recurrent_analysis(folder / "a.headscope.h5");
    const auto table = read_head_table(*store::AnalysisFile::open(folder / "a.headscope.h5"), 0);
    REQUIRE(table.column("softmax_fraction"));
    // Head h of the linear branch, after the softmax branch's two, has (h + 1) mod 4 of three chunks softmax.
    CHECK(HeadFilter("softmax_fraction > 0.5", table).rows(table) == std::vector<std::size_t>{3, 4});
    CHECK(HeadFilter("softmax_fraction = 0", table).rows(table) == std::vector<std::size_t>{5});
}

TEST_CASE("The table has a row a head and a column a measure, as the file has them", "[workspace][table]") {
    const test::TemporaryFolder folder;
    const auto file = write(folder, two_sequences());
    const HeadTable table = read_head_table(*file, 1);
    REQUIRE(table.rows.size() == 3 * 4);
    CHECK(table.rows[7].layer == 1);
    CHECK(table.rows[7].head == 3);
    CHECK(table.rows[7].key_value_head == 1);
    CHECK(table.rows[7].site_name == "1");
    CHECK(table.deviation.empty());
    for (std::size_t i = 1; i < table.columns.size(); ++i) {
        const Measure *before = find_measure(table.columns[i - 1]), *after = find_measure(table.columns[i]);
        REQUIRE(before);
        REQUIRE(after);
        CHECK(before < after);
    }
    const store::Values sink = file->indicator("sink"), focus = file->indicator("local_focus"),
                        diversity = file->indicator("head_diversity"), above = file->score_statistic("above");
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
        const auto at = [&](const char* column) { return table.value(row, *table.column(column)); };
        CHECK(at("sink") == sink.data[12 + row]);
        CHECK(at("local_focus_2") == focus.data[(12 + row) * 4 + 2]);
        CHECK(at("head_diversity") == diversity.data[3 + row / 4]);
        CHECK(at("above_100") == above.data[(12 + row) * 3 + 1]);
        CHECK(at("score_maximum") == file->score_statistic("maximum").data[12 + row]);
    }
}

TEST_CASE("The softmax fraction is a measure of NAtS-L's linear heads, and filters pick by it", "[workspace][table]") {
    const test::TemporaryFolder folder;
    tests::write_recurrent_analysis(folder / "types.headscope.h5");
    const HeadTable table = read_head_table(*store::AnalysisFile::open(folder / "types.headscope.h5"), 0);
    const auto column = table.column("softmax_fraction");
    REQUIRE(column);
    // Rows: two heads of the softmax branch, four of the linear one with 1, 2, 3 and 0 of 3 chunks, then others.
    CHECK(std::isnan(table.value(0, *column)));
    CHECK(table.value(2, *column) == Approx(1.0 / 3));
    CHECK(table.value(5, *column) == 0);
    CHECK(HeadFilter("softmax_fraction > 0.5", table).rows(table) == std::vector<std::size_t>{3, 4});
}

TEST_CASE("Offsets of a model are a column, the same of every sequence", "[workspace][table]") {
    const test::TemporaryFolder folder;
    auto header = tests::synthetic_header(two_sequences());
    header.sites[1].has_offsets = true;
    header.take_parameters();
    store::AnalysisWriter writer(folder / "a.headscope.h5", header);
    writer.write_parameters(1, std::vector<float>{-1.25F, -1, -0.75F, 0.5F}, {}, {});
    writer.publish();
    const HeadTable table = read_head_table(*store::AnalysisFile::open(folder / "a.headscope.h5"), std::nullopt);
    const auto column = table.column("offset");
    REQUIRE(column);
    CHECK(std::isnan(table.value(3, *column)));
    CHECK(table.value(4, *column) == -1.25);
    CHECK(table.deviation[4 * table.columns.size() + *column] == 0);
    CHECK(HeadFilter("offset > 0", table).rows(table) == std::vector<std::size_t>{7});
}

TEST_CASE("All sequences together are mean and standard deviation of what exists", "[workspace][table]") {
    const test::TemporaryFolder folder;
    const auto file = write(folder, two_sequences());
    const HeadTable first = read_head_table(*file, 0), second = read_head_table(*file, 1),
                    both = read_head_table(*file, std::nullopt);
    CHECK(both.sequences == 2);
    const std::size_t sink = *both.column("sink"), none = *both.column("virtual_sink");
    for (std::size_t row = 0; row < both.rows.size(); ++row) {
        const double a = first.value(row, sink), b = second.value(row, sink);
        CHECK(both.value(row, sink) == Approx((a + b) / 2).epsilon(1e-14));
        // Two values: their standard deviation is their distance over the root of two.
        CHECK(both.deviation[row * both.columns.size() + sink] ==
              Approx(std::abs(a - b) / std::sqrt(2.0)).epsilon(1e-12));
        CHECK(std::isnan(both.value(row, none)));
    }
    CHECK_THROWS_MATCHES(read_head_table(*file, 2), Error, IsError(ErrorCode::usage, "expected 0 to 1; found 2"));
}

TEST_CASE("Rows are sorted by value, what does not exist last both ways, ties in their order", "[workspace][table]") {
    HeadTable table;
    table.columns = {"sink"};
    table.values = {0.5, std::nan(""), 0.1, 0.5, 0.9};
    table.rows.resize(5);
    CHECK(sorted_rows(table, "sink", true) == std::vector<std::size_t>{4, 0, 3, 2, 1});
    CHECK(sorted_rows(table, "sink", false) == std::vector<std::size_t>{2, 0, 3, 4, 1});
    CHECK_THROWS_MATCHES(sorted_rows(table, "snik", true), Error, IsError(ErrorCode::usage, "snik"));
}

TEST_CASE("The table leaves as CSV and as LaTeX", "[workspace][table]") {
    HeadTable table;
    table.columns = {"sink", "above_10"};
    table.rows = {{0, 0, 0, 0, "0", "Layer 0"}, {1, 1, 3, 1, "decoder 1 cross", "Decoder layer 1, cross-attention"}};
    table.values = {0.25, std::nan(""), 1.5e-7, 12345};
    CHECK(figures::csv(plain_table(table, {1, 0}, {"above_10", "sink"})) ==
          "layer,site,head,key_value_head,above_10,sink\r\n"
          "1,decoder 1 cross,3,1,12345,1.5e-07\r\n"
          "0,0,0,0,,0.25\r\n");
    CHECK(latex_table(table, {0, 1}, {"sink", "above_10"}) ==
          "\\begin{tabular}{lrrr}\n\\toprule\n"
          "Layer & Head & Sink & Scores beyond 10 \\\\\n\\midrule\n"
          "0 & 0 & $0.25$ & -- \\\\\n"
          "decoder 1 cross & 3 & $1.5 \\cdot 10^{-7}$ & $1.23 \\cdot 10^{4}$ \\\\\n"
          "\\bottomrule\n\\end{tabular}\n");
    table.sequences = 2;
    table.deviation = {0.01, std::nan(""), std::nan(""), 3};
    CHECK(figures::csv(plain_table(table, {0}, {"sink"})) ==
          "layer,site,head,key_value_head,sink,sink_deviation\r\n0,0,0,0,0.25,0.01\r\n");
    CHECK(latex_table(table, {0, 1}, {"sink"}).find("$0.25 \\pm 0.01$") != std::string::npos);
    CHECK_THROWS_MATCHES(latex_table(table, {0}, {"what"}), Error, IsError(ErrorCode::usage, "what"));
}

TEST_CASE("Every measure has a name of its own, a title, a definition and a source", "[workspace][table]") {
    std::set<std::string_view> names;
    for (const Measure& measure : measures()) {
        CHECK(names.insert(measure.name).second);
        CHECK_FALSE(measure.title.empty());
        CHECK(measure.definition.back() == '.');
        CHECK_FALSE(measure.source.empty());
    }
}

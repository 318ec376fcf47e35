// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <cmath>

#include "core/store/analysis/analysis_header.h"
#include "core/store/ask/ask_file.h"
#include "core/workspace/asked_columns.h"
#include "core/workspace/head_filter.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;
using workspace::add_asked_columns;
using workspace::HeadTable;

namespace {

store::AskRecord record_of(const std::string& tool) {
    store::AskRecord record;
    record.tool = tool;
    record.model_name = "small";
    record.complete = true;
    record.mixers = {"standard", "standard"};
    for (std::int32_t layer = 0; layer < 2; ++layer) {
        Site site;
        site.layer = layer;
        site.heads = 2;
        record.sites.push_back(site);
    }
    record.sequences.resize(2);
    store::add_usual_dimensions(record);
    return record;
}

void count_up(store::AskTable& table) {
    for (std::size_t i = 0; i < table.values.size(); ++i) table.values[i] = static_cast<double>(i);
}

/// Two layers of two heads, two texts; scores 0, 1, 2, ..
store::AskRecord record_of_kinds() {
    store::AskRecord record = record_of("kinds");
    count_up(record.add_table("/kinds/induction", {"/sequence", "/site", "/head"}, "scores"));
    count_up(record.add_table("/kinds/induction_absolute", {"/sequence", "/site", "/head"}, "other scores"));
    count_up(record.add_table("/kinds/retrieval", {"/site", "/head"}, "copies"));
    record.add_table("/kinds/answer", {"/head"}, "no scores of heads");
    return record;
}

/// Losses 0, 1, 2, .. of two texts, whose unedited runs have 10 and 20; importance 0, 1, 2, 3.
store::AskRecord record_of_ablation() {
    store::AskRecord record = record_of("ablate");
    record.settings_json = R"({"metric": "loss", "how": "mean"})";
    record.add_table("/ablate/baseline", {"/sequence"}, "metric").values = {10, 20};
    count_up(record.add_table("/ablate/head", {"/sequence", "/site", "/head"}, "metric"));
    record.add_table("/ablate/attention", {"/sequence", "/layer"}, "metric of layers");
    count_up(record.add_table("/ablate/importance", {"/site", "/head"}, "importance by gradients of the loss"));
    return record;
}

/// Measures over all texts and an indicator with its deviation, all 0, 1, 2, 3; also sums and counts.
store::AskRecord record_of_corpus() {
    store::AskRecord record = record_of("corpus");
    const std::vector<std::string> heads{"/site", "/head"};
    count_up(record.add_table("/corpus/qk_distance", heads, "mean distance of query and key", "token"));
    count_up(record.add_table("/corpus/mean/sink", heads, "sink, mean over texts"));
    for (double& value : record.add_table("/corpus/std/sink", heads, "deviation").values) value = 0.25;
    count_up(record.add_table("/corpus/count/sink", heads, "texts", "text", true));
    count_up(record.add_table("/corpus/sum/distance", heads, "sum over all texts"));
    count_up(record.add_table("/corpus/document", {"/sequence"}, "document", "", true));
    return record;
}

store::AnalysisHeader header_of(const store::AskRecord& record) {
    store::AnalysisHeader header;
    header.model_name = record.model_name;
    header.model_sha256 = record.model_sha256;
    header.sites = record.sites;
    return header;
}

HeadTable table_of_sinks() {
    HeadTable table;
    table.columns = {"sink"};
    table.rows = {{1, 1, 1, 0, "1", "Layer 1"}, {0, 0, 0, 0, "0", "Layer 0"}};
    table.values = {0.5, 0.25};
    table.deviation = {0.1, 0.2};
    return table;
}

}  // namespace

TEST_CASE("Scores of heads join a table as columns", "[workspace][ask]") {
    HeadTable table = table_of_sinks();
    add_asked_columns(table, record_of_kinds(), "/files/kinds.ask.h5");
    CHECK(table.columns ==
          std::vector<std::string>{"sink", "kind_induction", "kind_induction_absolute", "kind_retrieval"});
    // Texts have 3 and 7, 0 and 4.
    CHECK(table.values == std::vector<double>{0.5, 5, 5, 3, 0.25, 2, 2, 0});
    CHECK(table.deviation.at(1) == Approx(std::sqrt(8)));
    CHECK(std::isnan(table.deviation.at(3)));
    CHECK(table.deviation.at(4) == 0.2);
    const workspace::ColumnWords words = table.words("kind_induction");
    CHECK(words.title == "Induction (kinds)");
    CHECK(words.definition == "Scores; mean over the 2 texts of the file");
    CHECK(words.source == "/files/kinds.ask.h5");
    CHECK(table.words("kind_induction_absolute").title == "Induction, absolute (kinds)");
    CHECK(table.words("kind_retrieval").definition == "Copies");
    CHECK(table.words("sink").title == "Sink");
    CHECK(table.words("charm").title == "charm");
    REQUIRE(table.find_added("kind_induction_absolute"));
    CHECK(table.find_added("kind_induction_absolute")->minor);
    CHECK(table.find_added("sink") == nullptr);
    CHECK(workspace::HeadFilter("kind_induction > 2 and sink > 0", table).rows(table) == std::vector<std::size_t>{0});
    table = table_of_sinks();
    table.deviation.clear();
    add_asked_columns(table, record_of_kinds(), "/files/kinds.ask.h5");
    CHECK(table.deviation.empty());
    CHECK(table.value(1, 1) == 2);
}

TEST_CASE("An ablation adds the change of its metric, and its importance", "[workspace][ask]") {
    HeadTable table = table_of_sinks();
    add_asked_columns(table, record_of_ablation(), "/files/ablate.ask.h5");
    CHECK(table.columns == std::vector<std::string>{"sink", "ablate_change", "ablate_importance"});
    // 3 - 10 and 7 - 20, 0 - 10 and 4 - 20.
    CHECK(table.values == std::vector<double>{0.5, -10, 3, 0.25, -13, 0});
    CHECK(table.deviation.at(1) == Approx(std::sqrt(18)));
    const workspace::ColumnWords words = table.words("ablate_change");
    CHECK(words.title == "Loss change (ablate)");
    CHECK(words.unit == "nat");
    CHECK(words.definition ==
          "Change of loss with the head's output replaced by its mean; mean over the 2 texts of the file");
    CHECK(table.find_added("ablate_change")->recipe == "ablation-heads");
}

TEST_CASE("A corpus adds its measures, and indicators with their deviation over texts", "[workspace][ask]") {
    HeadTable table = table_of_sinks();
    CHECK(workspace::has_asked_columns("corpus"));
    add_asked_columns(table, record_of_corpus(), "/files/corpus.ask.h5");
    CHECK(table.columns == std::vector<std::string>{"sink", "corpus_qk_distance", "corpus_mean_sink"});
    CHECK(table.values == std::vector<double>{0.5, 3, 3, 0.25, 0, 0});
    CHECK(std::isnan(table.deviation.at(1)));
    CHECK(table.deviation.at(2) == 0.25);
    const workspace::ColumnWords words = table.words("corpus_qk_distance");
    CHECK(words.title == "QK distance (corpus)");
    CHECK(words.unit == "token");
    CHECK(words.definition == "Mean distance of query and key");
    CHECK(table.words("corpus_mean_sink").title == "Sink, mean (corpus)");
    CHECK_FALSE(table.find_added("corpus_qk_distance")->minor);
    CHECK(table.find_added("corpus_mean_sink")->minor);
    CHECK(table.find_added("corpus_mean_sink")->recipe == "corpus-scatter");
    CHECK(workspace::HeadFilter("corpus_qk_distance > 2 and corpus_mean_sink > 0.5", table).rows(table) ==
          std::vector<std::size_t>{0});
    CHECK(workspace::main_asked_column(record_of_corpus(), 2) == "corpus_induction_score_2");
    add_asked_columns(table, record_of_corpus(), "/files/other.ask.h5", 2);
    CHECK(table.columns.back() == "corpus_mean_sink_2");
}

TEST_CASE("Columns of a tool's second file are numbered", "[workspace][ask]") {
    HeadTable table = table_of_sinks();
    add_asked_columns(table, record_of_ablation(), "/files/zero.ask.h5");
    store::AskRecord second = record_of_ablation();
    second.complete = false;
    add_asked_columns(table, second, "/files/mean.ask.h5", 2);
    CHECK(table.columns == std::vector<std::string>{"sink", "ablate_change", "ablate_importance", "ablate_change_2",
                                                    "ablate_importance_2"});
    CHECK(workspace::main_asked_column(second, 2) == "ablate_change_2");
    CHECK(workspace::main_asked_column(record_of_kinds(), 1) == "kind_induction");
    CHECK(table.values.size() == 10);
    CHECK(table.deviation.size() == 10);
    CHECK(table.value(1, 3) == -13);
    CHECK(table.words("ablate_importance_2").title == "Importance (ablate #2)");
    CHECK(table.words("ablate_importance_2").definition ==
          "Importance by gradients of the loss; the file is incomplete");
}

TEST_CASE("A table whose numbers do not fit the file's heads is left out", "[workspace][ask]") {
    store::AskRecord record = record_of_kinds();
    record.tables.front().values.pop_back();
    HeadTable table = table_of_sinks();
    add_asked_columns(table, record, "/files/kinds.ask.h5");
    CHECK(table.columns == std::vector<std::string>{"sink", "kind_induction_absolute", "kind_retrieval"});
}

TEST_CASE("Scores of another model's heads or another tool are refused", "[workspace][ask]") {
    HeadTable table = table_of_sinks();
    table.rows[0].head = 2;
    CHECK_THROWS_MATCHES(add_asked_columns(table, record_of_kinds(), "a"), Error,
                         test::IsError(ErrorCode::mismatch, "no head 2 at site 1"));
    CHECK(table.columns.size() == 1);
    store::AskRecord record = record_of_kinds();
    record.tool = "lens";
    CHECK_FALSE(workspace::has_asked_columns(record.tool));
    CHECK_THROWS_MATCHES(add_asked_columns(table, record, "a"), Error, test::IsError(ErrorCode::usage, "ask kinds"));
}

TEST_CASE("Files are of one model by fingerprint, or name, and sites", "[workspace][ask]") {
    store::AskRecord record = record_of_kinds();
    store::AnalysisHeader header = header_of(record);
    CHECK(workspace::of_same_model(header, record));  // by name: neither has a fingerprint
    header.model_name = "other";
    CHECK_FALSE(workspace::of_same_model(header, record));
    header.model_sha256 = record.model_sha256 = std::string(64, 'a');
    CHECK(workspace::of_same_model(header, record));
    header.model_name = record.model_name;
    header.model_sha256 = std::string(64, 'b');
    CHECK_FALSE(workspace::of_same_model(header, record));
    header = header_of(record);
    header.sites.back().heads = 3;
    CHECK_FALSE(workspace::of_same_model(header, record));
    header = header_of(record);
    header.sites.pop_back();
    CHECK_FALSE(workspace::of_same_model(header, record));
    header = header_of(record);
    header.model_name = record.model_name = header.model_sha256 = record.model_sha256 = "";
    CHECK_FALSE(workspace::of_same_model(header, record));
}

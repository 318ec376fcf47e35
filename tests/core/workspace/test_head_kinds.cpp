// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <cmath>

#include "core/store/ask/ask_file.h"
#include "core/workspace/head_kinds.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;
using workspace::add_head_kinds;
using workspace::HeadTable;

namespace {

/// Two layers of two heads, two texts; scores 0, 1, 2, ..
store::AskRecord record_of_kinds() {
    store::AskRecord record;
    record.tool = "kinds";
    record.mixers = {"standard", "standard"};
    for (std::int32_t layer = 0; layer < 2; ++layer) {
        Site site;
        site.layer = layer;
        site.heads = 2;
        record.sites.push_back(site);
    }
    record.sequences.resize(2);
    store::add_usual_dimensions(record);
    for (const auto& [path, axes] :
         {std::pair("/kinds/induction", std::vector<std::string>{"/sequence", "/site", "/head"}),
          std::pair("/kinds/retrieval", std::vector<std::string>{"/site", "/head"})}) {
        store::AskTable& table = record.add_table(path, axes, "scores");
        for (std::size_t i = 0; i < table.values.size(); ++i) table.values[i] = static_cast<double>(i);
    }
    return record;
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
    add_head_kinds(table, record_of_kinds());
    CHECK(table.columns == std::vector<std::string>{"sink", "kind_induction", "kind_retrieval"});
    // Texts have 3 and 7, 0 and 4.
    CHECK(table.values == std::vector<double>{0.5, 5, 3, 0.25, 2, 0});
    CHECK(table.deviation.at(1) == Approx(std::sqrt(8)));
    CHECK(std::isnan(table.deviation.at(2)));
    CHECK(table.deviation.at(3) == 0.2);
    table = table_of_sinks();
    table.deviation.clear();
    add_head_kinds(table, record_of_kinds());
    CHECK(table.deviation.empty());
    CHECK(table.value(1, 1) == 2);
}

TEST_CASE("Scores of another model's heads or another tool are refused", "[workspace][ask]") {
    HeadTable table = table_of_sinks();
    table.rows[0].head = 2;
    CHECK_THROWS_MATCHES(add_head_kinds(table, record_of_kinds()), Error,
                         test::IsError(ErrorCode::mismatch, "no head 2 at site 1"));
    store::AskRecord record = record_of_kinds();
    record.tool = "lens";
    CHECK_THROWS_MATCHES(add_head_kinds(table, record), Error, test::IsError(ErrorCode::usage, "ask kinds"));
}

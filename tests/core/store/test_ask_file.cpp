// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>

#include "core/base/error.h"
#include "core/store/ask/ask_file.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
using test::IsError;

TEST_CASE("An ask file reads back as it was written", "[store][ask]") {
    const test::TemporaryFolder folder;
    store::AskRecord record;
    record.tool = "patch";
    record.settings_json = R"({"a":1})";
    record.created = "2026-01-01T00:00:00Z";
    record.model_name = "tiny";
    record.interventions = "[[intervention]]\n";
    record.mixers = {"standard", "mamba2"};
    record.sites.resize(2);
    record.sites[1].layer = 1;
    record.sites[1].branch = "linear";
    record.sites[1].has_matrix = false;
    record.sites[0].heads = record.sites[1].heads = 3;
    record.sequences.resize(2);
    record.sequences[0].ids = {1, 2, 3};
    record.sequences[0].pieces = {"a", "b", "c"};
    record.sequences[0].text = "abc";
    record.sequences[1].ids = {4};
    record.sequences[1].pieces = {"d"};
    store::add_usual_dimensions(record);
    store::AskTable& numbers =
        record.add_table("/patch/value/head_output", {"/sequence", "/site", "/head"}, "numbers", "nat");
    for (std::size_t i = 0; i + 1 < numbers.values.size(); ++i) numbers.values[i] = 0.5 * static_cast<double>(i);
    store::AskTable& whole = record.add_table("/lens/rank", {"/sequence"}, "ranks", "", true);
    whole.values[1] = 7;
    store::write_ask(folder / "a.ask.h5", record);
    const store::AskRecord read = store::read_ask(folder / "a.ask.h5");
    CHECK(read.tool == "patch");
    CHECK_FALSE(read.complete);
    CHECK(read.created == record.created);
    CHECK(read.settings_json == record.settings_json);
    CHECK(read.interventions == record.interventions);
    CHECK(read.mixers == record.mixers);
    CHECK(read.sites[1].branch == "linear");
    CHECK_FALSE(read.sites[1].has_matrix);
    CHECK(read.sequences[0].pieces == record.sequences[0].pieces);
    CHECK(read.sequences[1].ids == record.sequences[1].ids);
    const store::AskTable& found = read.table("/patch/value/head_output");
    CHECK(found.units == "nat");
    CHECK(read.shape_of(found) == std::vector<std::int64_t>{2, 2, 3});
    CHECK(found.values[3] == 1.5);
    CHECK(std::isnan(found.values.back()));
    CHECK(read.table("/lens/rank").values == std::vector<double>{-1, 7});
    CHECK(read.table("/lens/rank").whole);
    CHECK(store::ask_csv(read, read.table("/lens/rank")) == "sequence,value\n0,-1\n1,7\n");
    CHECK_THROWS_MATCHES(read.table("/lens/kl"), Error, IsError(ErrorCode::format, "/lens/kl"));
}

TEST_CASE("Other files are refused", "[store][ask]") {
    const test::TemporaryFolder folder;
    std::ofstream(folder / "a.ask.h5") << "text";
    CHECK_THROWS_AS(store::read_ask(folder / "a.ask.h5"), Error);
    CHECK_THROWS_AS(store::read_ask(folder / "none.ask.h5"), Error);
}

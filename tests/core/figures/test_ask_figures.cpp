// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <variant>

#include "core/base/error.h"
#include "core/figures/make_figure.h"
#include "core/store/ask/ask_file.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;
using namespace headscope::figures;
using test::IsError;

namespace {

/// Two texts of three tokens, two layers of two heads.
store::AskRecord record_of(const std::string& tool) {
    store::AskRecord record;
    record.tool = tool;
    record.model_name = "tiny";
    record.complete = true;
    record.mixers = {"standard", "standard"};
    for (std::int32_t layer = 0; layer < 2; ++layer) {
        Site site;
        site.layer = layer;
        site.heads = site.key_value_heads = 2;
        record.sites.push_back(site);
    }
    for (int s = 0; s < 2; ++s) {
        store::SequenceTokens text;
        text.ids = {4, 5, 6};
        text.pieces = {"a", "b", "c"};
        record.sequences.push_back(text);
    }
    store::add_usual_dimensions(record);
    return record;
}

/// Numbers 0, 1, 2, .. in a new table.
void fill(store::AskRecord& record, const std::string& path, const std::vector<std::string>& dimensions) {
    store::AskTable& table = record.add_table(path, dimensions, "numbers");
    for (std::size_t i = 0; i < table.values.size(); ++i) table.values[i] = static_cast<double>(i);
}

FigureData drawn(const store::AskRecord& record, const std::string& figure, const FigureOptions& options = {}) {
    FigureInputs inputs;
    inputs.asks.push_back(std::make_shared<store::AskRecord>(record));
    return make_figure(figure, inputs, options);
}

const HeatMap& map_of(const FigureData& figure, std::size_t panel = 0) {
    return std::get<HeatMap>(figure.panels.at(panel).content);
}

}  // namespace

TEST_CASE("Patched layers are colored around the corrupted run, or as shares", "[figures][ask]") {
    store::AskRecord record = record_of("patch");
    fill(record, "/patch/clean", {"/sequence"});
    fill(record, "/patch/corrupted", {"/sequence"});
    record.tables[0].values = {10, 20};
    record.tables[1].values = {2, 4};
    fill(record, "/patch/value/hidden", {"/sequence", "/layer", "/token"});
    FigureOptions options;
    options.sequence = 1;
    const FigureData plain = drawn(record, "patch-layers", options);
    CHECK(map_of(plain).rows == 2);
    CHECK(map_of(plain).columns == 3);
    CHECK(map_of(plain).values[0] == 6);
    CHECK((map_of(plain).colours.minimum + map_of(plain).colours.maximum) / 2 == Approx(4));
    CHECK(plain.panels[0].x.cell_labels == std::vector<std::string>{"a", "b", "c"});
    CHECK(plain.table().rows() == 12);
    options.normalized = true;
    CHECK(map_of(drawn(record, "patch-layers", options)).values[2] == Approx((8.0 - 4) / 16));
    options.site = "pattern";
    CHECK_THROWS_MATCHES(drawn(record, "patch-layers", options), Error,
                         IsError(ErrorCode::usage, "expected one of hidden; found pattern"));
    CHECK_THROWS_MATCHES(drawn(record, "patch-heads"), Error, IsError(ErrorCode::usage, "--site"));
    CHECK_THROWS_MATCHES(drawn(record, "lens"), Error, IsError(ErrorCode::usage, "a file of headscope ask lens"));
}

TEST_CASE("Heads of several texts are their mean", "[figures][ask]") {
    store::AskRecord record = record_of("ablate");
    fill(record, "/ablate/baseline", {"/sequence"});
    record.tables[0].values = {1, 3};
    fill(record, "/ablate/head", {"/sequence", "/site", "/head"});
    fill(record, "/ablate/attention", {"/sequence", "/layer"});
    fill(record, "/ablate/feed_forward", {"/sequence", "/layer"});
    const FigureData figure = drawn(record, "ablation-heads");
    CHECK(figure.panels.size() == 3);
    // ((0 - 1) + (4 - 3)) / 2
    CHECK(map_of(figure).values[0] == Approx(0));
    CHECK(map_of(figure).colours.minimum == -map_of(figure).colours.maximum);
    CHECK(figure.notes.front() == "Mean of 2 texts, tiny.");
    record.complete = false;
    FigureOptions options;
    options.sequence = 0;
    const FigureData one = drawn(record, "ablation-heads", options);
    CHECK(map_of(one).values[3] == 2);
    CHECK(one.notes.size() == 2);
    options.sequence = 2;
    CHECK_THROWS_MATCHES(drawn(record, "ablation-heads", options), Error, IsError(ErrorCode::usage, "--sequence"));
}

TEST_CASE("A lens shows the last boundary on top", "[figures][ask]") {
    store::AskRecord record = record_of("lens");
    record.add_dimension("/boundary", 3, "boundary");
    record.add_dimension("/top", 2, "place");
    fill(record, "/lens/top_id", {"/sequence", "/boundary", "/token", "/top"});
    fill(record, "/lens/top_probability", {"/sequence", "/boundary", "/token", "/top"});
    fill(record, "/lens/log_probability", {"/sequence", "/boundary", "/token"});
    fill(record, "/lens/rank", {"/sequence", "/boundary", "/token"});
    record.words[4] = " a";
    FigureOptions options;
    options.show = "rank";
    const FigureData figure = drawn(record, "lens", options);
    CHECK(map_of(figure).values == std::vector<float>{6, 7, 8, 3, 4, 5, 0, 1, 2});
    CHECK(figure.panels[0].y.ticks[0].label == "2");
    REQUIRE(figure.text_table);
    CHECK(figure.text_table->rows[2] == std::vector<std::string>{"0", "#0", "#2", "␣a"});
    options.show = "token";
    CHECK(map_of(drawn(record, "lens", options)).values[0] == 12);
    options.show = "probability";
    CHECK(map_of(drawn(record, "lens", options)).values[6] == 1);
}

TEST_CASE("Generated tokens end where the text does, with means of heads by layer", "[figures][ask]") {
    store::AskRecord record = record_of("generate");
    record.add_dimension("/step", 3, "step");
    record.add_dimension("/top", 1, "place");
    const std::vector<std::string> steps{"/sequence", "/step"}, heads{"/sequence", "/step", "/site", "/head"};
    fill(record, "/generate/token", steps);
    fill(record, "/generate/log_probability", steps);
    fill(record, "/generate/top_id", {"/sequence", "/step", "/top"});
    fill(record, "/generate/top_probability", {"/sequence", "/step", "/top"});
    fill(record, "/generate/entropy", heads);
    fill(record, "/generate/sink", heads);
    record.tables[0].values[2] = -1;
    record.words[1] = "b";
    const FigureData figure = drawn(record, "generation");
    REQUIRE(figure.panels.size() == 3);
    CHECK(std::get<Curves>(figure.panels[0].content).curves.at(0).x.size() == 2);
    const auto& map = std::get<HeatMap>(figure.panels[1].content);
    CHECK(map.columns == 2);
    CHECK(map.values.front() ==
          (record.table("/generate/entropy").values[0] + record.table("/generate/entropy").values[1]) / 2);
    CHECK(figure.panels[1].x.cell_labels.at(1) == "b");
    CHECK(figure.text_table->rows.size() == 2);
}

TEST_CASE("Terms of a logit are heads, layers and a table", "[figures][ask]") {
    store::AskRecord record = record_of("attribution");
    fill(record, "/attribution/head", {"/sequence", "/site", "/head"});
    for (const char* name : {"attention", "feed_forward"})
        fill(record, std::string("/attribution/") + name, {"/sequence", "/layer"});
    for (const char* name :
         {"embedding", "position_embedding", "final_norm_bias", "unembedding_bias", "total", "logit"})
        fill(record, std::string("/attribution/") + name, {"/sequence"});
    const FigureData figure = drawn(record, "attribution");
    CHECK(figure.panels.size() == 2);
    CHECK(map_of(figure).values == std::vector<float>{2, 3, 4, 5});
    CHECK(std::get<Curves>(figure.panels[1].content).curves.at(1).y == std::vector<double>{1, 2});
    CHECK(figure.text_table->rows.back() == std::vector<std::string>{"logit", "0.5"});
}

TEST_CASE("Sinks are drawn by threshold, position and token", "[figures][ask]") {
    store::AskRecord record = record_of("sinks");
    record.settings_json = R"({"epsilon": 4})";
    record.add_dimension("/boundary", 3, "boundary");
    record.add_dimension("/threshold", 2, "threshold");
    record.add_dimension("/key_value_head", 2, "head");
    fill(record, "/sinks/threshold", {"/threshold"});
    fill(record, "/sinks/rate_by_threshold", {"/threshold"});
    fill(record, "/sinks/rate_by_site", {"/site", "/token"});
    const FigureData rate = drawn(record, "sink-rate");
    CHECK(std::get<Curves>(rate.panels.at(0).content).curves.at(0).y == std::vector<double>{0, 1});
    CHECK(map_of(rate, 1).values == std::vector<float>{0, 1, 2, 3, 4, 5});
    CHECK(map_of(rate, 1).colours.maximum == 1);

    for (const char* name : {"activation_median", "activation_maximum"})
        fill(record, std::string("/sinks/") + name, {"/sequence", "/boundary"});
    for (const char* name : {"token_maximum", "token_channel"})
        fill(record, std::string("/sinks/") + name, {"/sequence", "/boundary", "/token"});
    FigureOptions options;
    options.sequence = 1;
    const FigureData calm = drawn(record, "massive-activations", options);
    CHECK(map_of(calm, 1).values[0] == 3);  // 9 over a median of 3
    CHECK(!calm.text_table);
    for (store::AskTable& table : record.tables)
        if (table.path == "/sinks/token_maximum") table.values[13] = -5000;
    const FigureData massive = drawn(record, "massive-activations", options);
    REQUIRE(massive.text_table);
    CHECK(massive.text_table->rows == std::vector<std::vector<std::string>>{{"b", "1", "1", "13", "-5000", "1250"}});

    fill(record, "/sinks/column_mass", {"/sequence", "/site", "/head", "/token"});
    fill(record, "/sinks/value_norm", {"/sequence", "/site", "/key_value_head", "/token"});
    const FigureData norms = drawn(record, "value-norms");
    const auto& curves = std::get<Curves>(norms.panels.at(0).content).curves;
    // Site 0, those above 4: 5 of the first text, 12 .. 17 of the second; site 1: all.
    CHECK(curves.at(0).y == std::vector<double>{(5 + 12 + 13 + 14 + 15 + 16 + 17) / 7.0, (8.5 + 20.5) / 2});
    CHECK(curves.at(1).y == std::vector<double>{2});
    CHECK(map_of(norms, 1).values[0] == 1.5F);
}

TEST_CASE("Massive activations of a decoder behind an encoder are those of its own tokens",
          "[figures][ask][encoder-decoder]") {
    store::AskRecord record = record_of("sinks");
    record.sites[0].stack = "encoder";
    record.sites[1].stack = "decoder";
    for (store::SequenceTokens& text : record.sequences) {
        store::SequenceTokens target = text;
        target.pieces = {"x", "y", "z"};
        text.target = std::make_shared<const store::SequenceTokens>(target);
    }
    record.add_dimension("/boundary", 4, "boundary");  // input and output of each stack
    for (const char* name : {"activation_median", "activation_maximum"})
        fill(record, std::string("/sinks/") + name, {"/sequence", "/boundary"});
    for (const char* name : {"token_channel", "token_maximum"})
        fill(record, std::string("/sinks/") + name, {"/sequence", "/boundary", "/token"});
    record.tables.back().values[17] = 5000;   // text 1, boundary 1, token 2
    record.tables.back().values[19] = -8000;  // boundary 2, token 1
    FigureOptions options;
    options.sequence = 1;
    const FigureData figure = drawn(record, "massive-activations", options);
    REQUIRE(figure.text_table);
    CHECK(figure.text_table->rows == std::vector<std::vector<std::string>>{{"y", "1", "2", "19", "-8000", "1333"},
                                                                           {"c", "2", "1", "17", "5000", "1000"}});
}

TEST_CASE("Heads over a corpus are dots, and one head with its texts", "[figures][ask]") {
    store::AskRecord record = record_of("corpus");
    for (const auto& [path, size] : {std::pair("/counter", 6), std::pair("/slot", 2), std::pair("/top_token", 2),
                                     std::pair("/distance", 3), std::pair("/histogram_cell", 4)})
        record.add_dimension(path, size, "axis");
    fill(record, "/corpus/progress", {"/counter"});
    fill(record, "/corpus/qk_distance", {"/site", "/head"});
    fill(record, "/corpus/induction_score", {"/site", "/head"});
    fill(record, "/corpus/mean/sink", {"/site", "/head"});
    fill(record, "/corpus/std/sink", {"/site", "/head"});
    record.tables[2].values[3] = std::nan("");
    const FigureData plain = drawn(record, "corpus-scatter");
    const auto& dots = std::get<Curves>(plain.panels.at(0).content);
    REQUIRE(dots.curves.size() == 2);
    CHECK(dots.curves[1].x == std::vector<double>{2});
    CHECK(dots.labels.at(0).text == "1.0");
    CHECK(plain.table().rows() == 4);
    FigureOptions options;
    options.x = "std/sink";
    options.y = "sink";
    CHECK(std::get<Curves>(drawn(record, "corpus-scatter", options).panels.at(0).content).curves[0].error ==
          std::vector<double>{0, 1});
    options.y = "mass";
    CHECK_THROWS_MATCHES(
        drawn(record, "corpus-scatter", options), Error,
        IsError(ErrorCode::usage, "expected a measure of heads: qk_distance, induction_score, std/sink"));

    for (const char* name : {"kept", "kept_sequence", "kept_maximum", "kept_query", "kept_key"})
        fill(record, std::string("/corpus/") + name, {"/site", "/head", "/slot"});
    for (const char* name : {"query_token", "query_mass", "key_token", "key_mass"})
        fill(record, std::string("/corpus/") + name, {"/site", "/head", "/top_token"});
    fill(record, "/corpus/maximum_histogram", {"/site", "/head", "/histogram_cell"});
    fill(record, "/corpus/distance_histogram", {"/site", "/head", "/distance"});
    fill(record, "/corpus/distance", {"/distance"});
    for (store::AskTable& table : record.tables) {
        if (table.path == "/corpus/kept_sequence") table.values[5] = -1, table.values[4] = 1;
        if (table.path == "/corpus/kept_query") table.values[4] = 2;
        if (table.path == "/corpus/kept_key") table.values[4] = 1;
    }
    record.words[4] = "a";
    options.layer = 1;
    options.head = 0;
    const FigureData head = drawn(record, "corpus-head", options);
    CHECK(std::get<Curves>(head.panels.at(0).content).curves[0].y == std::vector<double>{8, 9, 10, 11});
    CHECK(std::get<Curves>(head.panels.at(1).content).curves[0].y == std::vector<double>{6.0 / 21, 7.0 / 21, 8.0 / 21});
    CHECK(std::get<TextBlock>(head.panels.at(2).content).chips.at(0).text == "a");
    REQUIRE(head.text_table);
    CHECK(head.text_table->rows == std::vector<std::vector<std::string>>{{"b", "c", "abc", "4", "1", "4"}});
    options.head = 2;
    CHECK_THROWS_MATCHES(drawn(record, "corpus-head", options), Error, IsError(ErrorCode::usage, "--head"));
}

TEST_CASE("A knockout is a curve by layer with all layers as a line", "[figures][ask]") {
    store::AskRecord record = record_of("knockout");
    fill(record, "/knockout/baseline", {"/sequence"});
    fill(record, "/knockout/value", {"/sequence"});
    record.tables[0].values = {1, 2};
    record.tables[1].values = {4, 8};
    const FigureData plain = drawn(record, "knockout");
    REQUIRE(plain.panels.size() == 1);
    CHECK(std::get<Curves>(plain.panels[0].content).curves.at(0).y == std::vector<double>{3, 6});
    fill(record, "/knockout/by_layer", {"/sequence", "/layer"});
    record.settings_json = R"({"queries": "8-11", "keys": "2", "heads": "", "metric": "loss"})";
    const FigureData figure = drawn(record, "knockout");
    REQUIRE(figure.panels.size() == 2);
    // ((0 - 1) + (2 - 2)) / 2 and ((1 - 1) + (3 - 2)) / 2
    CHECK(std::get<Curves>(figure.panels[0].content).curves.at(0).y == std::vector<double>{-0.5, 0.5});
    CHECK(figure.panels[0].markers.at(0).position == Approx(4.5));
    CHECK(figure.notes.back() == "Queries 8-11 do not attend to keys 2.");
}

TEST_CASE("Steering is a map of layers and factors with the vectors' lengths", "[figures][ask]") {
    store::AskRecord record = record_of("steer");
    record.add_dimension("/channel", 2, "channel");
    record.add_dimension("/factor", 2, "factor");
    record.add_table("/steer/factor", {"/factor"}, "factor").values = {-1.5, 2};
    record.add_table("/steer/vector", {"/layer", "/channel"}, "vectors").values = {3, 4, 6, 8};
    record.add_table("/steer/baseline", {"/sequence"}, "baseline").values = {1, 2};
    fill(record, "/steer/value", {"/sequence", "/layer", "/factor"});
    const FigureData figure = drawn(record, "steering");
    REQUIRE(figure.panels.size() == 3);
    // ((0 - 1) + (4 - 2)) / 2 ..
    CHECK(map_of(figure).values == std::vector<float>{0.5, 1.5, 2.5, 3.5});
    CHECK(figure.panels[0].x.ticks.at(0).label == "-1.5");
    CHECK(std::get<Curves>(figure.panels[1].content).curves.at(1).x == std::vector<double>{-1.5, 2});
    CHECK(std::get<Curves>(figure.panels[2].content).curves.at(0).y == std::vector<double>{5, 10});
}

TEST_CASE("Kinds of heads are a map each, and a row per head", "[figures][ask]") {
    store::AskRecord record = record_of("kinds");
    for (const char* kind : {"previous", "duplicate", "induction", "self", "self_absolute"})
        fill(record, std::string("/kinds/") + kind, {"/sequence", "/site", "/head"});
    record.add_dimension("/step", 2, "step");
    fill(record, "/kinds/retrieval", {"/site", "/head"});
    fill(record, "/kinds/answer", {"/step"});
    const FigureData figure = drawn(record, "head-kinds");
    REQUIRE(figure.panels.size() == 5);
    CHECK(map_of(figure).values == std::vector<float>{2, 3, 4, 5});
    CHECK(map_of(figure, 4).values == std::vector<float>{0, 1, 2, 3});
    CHECK(map_of(figure, 4).colours.minimum == 0);
    const Table table = figure.table();
    CHECK(table.rows() == 4);
    CHECK(table.columns.size() == 9);  // site, layer, head, five scores and retrieval
    CHECK(table.columns.at(8).name == "retrieval");
    CHECK(std::get<std::vector<double>>(table.columns.at(8).values).at(3) == 3);
}

TEST_CASE("Circuits are scores with spectra, or heads x heads", "[figures][ask]") {
    store::AskRecord record = record_of("circuits");
    record.add_dimension("/singular_value", 3, "place");
    record.add_dimension("/later_site", 2, "site");
    record.add_dimension("/later_head", 2, "head");
    for (const char* which : {"qk", "ov"}) {
        fill(record, std::string("/circuits/") + which + "_singular_values", {"/site", "/head", "/singular_value"});
        fill(record, std::string("/circuits/") + which + "_eigenvalue_score", {"/site", "/head"});
    }
    fill(record, "/circuits/copying_score", {"/site", "/head"});
    fill(record, "/circuits/composition_k", {"/site", "/head", "/later_site", "/later_head"});
    const FigureData ov = drawn(record, "circuits");
    REQUIRE(ov.panels.size() == 3);
    CHECK(map_of(ov, 1).colours.minimum == -1);
    // Heads have 0, 1, 2 and 3, 4, 5.
    CHECK(std::get<Curves>(ov.panels[2].content).curves.at(0).y == std::vector<double>{1.5, 2.5, 3.5});
    FigureOptions options;
    options.matrix = "qk";
    CHECK(drawn(record, "circuits", options).panels.size() == 2);
    options.matrix = "composition_k";
    const FigureData composition = drawn(record, "circuits", options);
    REQUIRE(composition.panels.size() == 1);
    CHECK(map_of(composition).rows == 4);
    CHECK(map_of(composition).values[6] == 6);         // head 1 of layer 0, head 0 of layer 1
    CHECK(std::isnan(map_of(composition).values[1]));  // one layer
    // Cross-attention follows the self-attention of its own layer.
    store::AskRecord two = record;
    two.sites[1].layer = 0;
    two.sites[1].kind = "cross";
    CHECK(map_of(drawn(two, "circuits", options)).values[6] == 6);
    options.matrix = "composition_q";
    CHECK_THROWS_MATCHES(drawn(record, "circuits", options), Error, IsError(ErrorCode::format, "composition_q"));
}

TEST_CASE("Errors of smaller caches are curves and maps of heads", "[figures][ask]") {
    store::AskRecord record = record_of("cache");
    record.add_dimension("/ratio", 2, "ratio");
    record.add_table("/cache/ratio", {"/ratio"}, "ratio").values = {0.75, 0.25};
    fill(record, "/cache/h2o/error", {"/sequence", "/ratio", "/site", "/head"});
    fill(record, "/cache/key_norm/error", {"/sequence", "/ratio", "/site", "/head"});
    FigureOptions options;
    options.sequence = 0;
    const FigureData figure = drawn(record, "cache-error", options);
    REQUIRE(figure.panels.size() == 4);
    const Curve& line = std::get<Curves>(figure.panels[0].content).curves.at(0);
    CHECK(line.x == std::vector<double>{0.25, 0.75});
    CHECK(line.y == std::vector<double>{5.5, 1.5});
    CHECK(std::get<Curves>(figure.panels[1].content).curves.at(1).y == std::vector<double>{0.5, 2.5});
    CHECK(map_of(figure, 2).values == std::vector<float>{0, 1, 2, 3});
    CHECK(figure.legend.at(0).name == "H2O");
    CHECK(figure.legend.at(1).name == "key norm");
    // All texts: 4 more in the mean.
    CHECK(map_of(drawn(record, "cache-error"), 2).values == std::vector<float>{4, 5, 6, 7});
}

// SPDX-License-Identifier: GPL-3.0-or-later
// Figures of an encoder-decoder: sites of three kinds, two token streams, maps that are not square.
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "core/base/error.h"
#include "core/figures/make_figure.h"
#include "core/figures/recipe.h"
#include "core/store/analysis/analysis_file.h"
#include "core/store/analysis/analysis_writer.h"
#include "kernels/attention.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
using namespace headscope::figures;

namespace {

constexpr std::int64_t kSource = 7, kTarget = 3, kHeads = 2, kSize = 4;

store::SequenceTokens tokens(const std::string& name, std::int64_t length) {
    store::SequenceTokens made;
    for (std::int64_t i = 0; i < length; ++i) {
        made.ids.push_back(static_cast<std::int32_t>(i));
        made.pieces.push_back(name + std::to_string(i));
        made.offsets.push_back({0, 0});
    }
    return made;
}

store::AnalysisHeader header() {
    store::AnalysisHeader made;
    made.model_name = "pair";
    made.mixers = {"standard", "standard"};
    const auto add = [&](std::int32_t layer, const char* stack, const char* kind, const char* query, const char* key) {
        Site site;
        site.layer = layer;
        site.stack = stack;
        site.kind = kind;
        site.heads = site.key_value_heads = kHeads;
        site.key_size = site.value_size = kSize;
        site.query_stream = query;
        site.key_stream = key;
        site.causal = query != std::string("tokens") && query == std::string(key);
        made.sites.push_back(site);
    };
    add(0, "encoder", "self", "tokens", "tokens");
    add(1, "decoder", "self", "target", "target");
    add(1, "decoder", "cross", "target", "tokens");
    made.sequences = {tokens("s", kSource)};
    made.streams["target"] = {tokens("t", kTarget)};
    made.record.maps = true;
    return made;
}

void write_site(store::AnalysisWriter& writer, const store::AnalysisHeader& header, std::int64_t number) {
    const Site& site = header.sites[static_cast<std::size_t>(number)];
    const std::int64_t queries = header.queries(0, site), keys = header.keys(0, site);
    std::mt19937 random(static_cast<unsigned>(number) + 1);
    std::normal_distribution<float> normal;
    std::vector<float> q(static_cast<std::size_t>(kHeads * queries * kSize)),
        k(static_cast<std::size_t>(kHeads * keys * kSize));
    for (float& value : q) value = normal(random);
    for (float& value : k) value = normal(random);
    const auto view = [](const std::vector<float>& data, std::int64_t length) {
        return kernels::TensorView{data.data(),
                                   kernels::ElementType::float32,
                                   1,
                                   kHeads,
                                   length,
                                   kSize,
                                   kHeads * length * kSize,
                                   length * kSize,
                                   kSize};
    };
    kernels::ScoreRule rule;
    rule.causal = site.causal;
    kernels::StatisticsRequest request;
    request.cross = site.kind == "cross";
    kernels::Statistics statistics;
    kernels::attention({view(q, queries), view(k, keys), view(k, keys), &rule, nullptr}, {}, &request, &statistics);
    writer.write_map(0, number, q, k, statistics.row_constant, rule, 0);
    writer.write_site(0, number, statistics, 0);
}

class Pair {
public:
    Pair() {
        const store::AnalysisHeader made = header();
        store::AnalysisWriter writer(folder_ / "pair.headscope.h5", made);
        for (std::int64_t site = 0; site < 3; ++site) write_site(writer, made, site);
        writer.write_loss(0, std::vector<float>{1, 2, NAN});
        writer.publish();
        file_ = store::AnalysisFile::open(folder_ / "pair.headscope.h5");
    }
    FigureData make(const std::string& recipe, const FigureOptions& options = {}) const {
        return make_figure(recipe, std::vector{file_}, options);
    }

private:
    test::TemporaryFolder folder_;
    std::shared_ptr<store::AnalysisFile> file_;
};

}  // namespace

TEST_CASE("A decoder layer's figure shows its own map and the one of the source, each with its tokens", "[figures]") {
    const Pair pair;
    FigureOptions options;
    options.layer = 1;
    options.head = 1;
    const FigureData figure = pair.make("attention", options);
    REQUIRE(figure.panels.size() == 2);
    CHECK(figure.panels[0].title == "decoder layer 1, self-attention");
    CHECK(figure.panels[1].title == "decoder layer 1, cross-attention");
    CHECK(figure.panels[0].x.cell_labels == std::vector<std::string>{"t0", "t1", "t2"});
    CHECK(figure.panels[1].x.cell_labels.size() == kSource);
    CHECK(figure.panels[1].x.cell_labels.front() == "s0");
    CHECK(figure.panels[1].y.cell_labels == std::vector<std::string>{"t0", "t1", "t2"});
    CHECK(figure.panels[1].x.label == "key (source)");
    CHECK(figure.panels[1].y.label == "query (target)");
    const auto& cells = std::get<HeatMap>(figure.panels[1].content);
    CHECK(cells.rows == kTarget);
    CHECK(cells.columns == kSource);
    for (std::int64_t row = 0; row < kTarget; ++row) {
        double sum = 0;
        for (std::int64_t column = 0; column < kSource; ++column)
            sum += cells.values[static_cast<std::size_t>(row * kSource + column)];
        CHECK(sum == Approx(1).epsilon(1e-5));
    }
    const Table table = figure.table();
    const auto& site = std::get<std::vector<std::string>>(table.columns.at(2).values);
    CHECK(table.columns.at(2).name == "site");
    CHECK(site.front() == "decoder 1 self");
    CHECK(site.back() == "decoder 1 cross");
    CHECK(figure.notes.front().find("7 tokens and 3 of the target") != std::string::npos);
}

TEST_CASE("Thumbnails of unequal maps fill their squares, and their table has the blocks there are", "[figures]") {
    const Pair pair;
    const FigureData figure = pair.make("thumbnails");
    const auto& mosaic = std::get<Mosaic>(figure.panels.front().content);
    REQUIRE(mosaic.rows == 3);
    REQUIRE(mosaic.columns == kHeads);
    REQUIRE(mosaic.size == kSource);
    CHECK(figure.panels.front().y.ticks[2].label == "decoder 1 cross");
    const auto cell = [&](std::int64_t row, std::int64_t column, std::int64_t y, std::int64_t x) {
        return mosaic.values[static_cast<std::size_t>(((row * kHeads + column) * kSource + y) * kSource + x)];
    };
    // The decoder's own map is causal: grey above the diagonal of 3 blocks, drawn 7 wide.
    CHECK(std::isnan(cell(1, 0, 0, 6)));
    CHECK_FALSE(std::isnan(cell(1, 0, 6, 0)));
    // Each row of the cross map is the weights of one query, drawn over two or three lines.
    for (std::int64_t y = 0; y < kSource; ++y) {
        double sum = 0;
        for (std::int64_t x = 0; x < kSource; ++x) sum += cell(2, 1, y, x);
        CHECK(sum == Approx(1).epsilon(0.01));
    }
    CHECK(figure.notes.back().starts_with("All maps are drawn as squares"));
    const Table table = figure.table();
    // 7 x 7, the lower triangle of 3 x 3, 3 x 7; for two heads.
    CHECK(table.rows() == kHeads * (49 + 6 + 21));
}

TEST_CASE("What cross-attention lacks is left out of the other figures", "[figures]") {
    const Pair pair;
    const FigureData radar = pair.make("radar");
    REQUIRE(radar.panels.size() >= 3);
    CHECK(radar.panels[2].title == "Decoder layer 1, cross-attention");
    const auto& series = std::get<Radar>(radar.panels[2].content).series.front();
    CHECK(std::isfinite(series.values[0]));
    for (std::size_t spoke = 3; spoke < 7; ++spoke) CHECK(std::isnan(series.values[spoke]));
    FigureOptions options;
    options.indicator = "local_focus";
    const FigureData indicators = pair.make("indicators", options);
    const auto& map = std::get<HeatMap>(indicators.panels.front().content);
    REQUIRE(map.rows == 3);
    CHECK(std::isnan(map.values[2 * kHeads]));
    CHECK_FALSE(std::isnan(map.values[0]));
    CHECK(pair.make("logits").panels.size() == 1);
}

TEST_CASE("Of an encoder-decoder one attention can be chosen", "[figures]") {
    const Pair pair;
    FigureOptions options;
    options.tower = Tower::cross;
    const FigureData cross = pair.make("attention", options);
    REQUIRE(cross.panels.size() == kHeads);
    CHECK(cross.panels[0].x.cell_labels.size() == kSource);
    options.layer = 1;
    options.head = 0;
    options.tower = Tower::decoder;
    const FigureData own = pair.make("attention", options);
    REQUIRE(own.panels.size() == 1);
    CHECK(own.panels[0].x.cell_labels.size() == kTarget);
    options.layer = 0;
    CHECK_THROWS_AS(pair.make("attention", options), Error);

    // Queries that attend to a source token are target tokens; keys of these are source tokens.
    const auto chips = [&](const FigureOptions& wish) {
        std::size_t tokens = 0;
        for (const auto& chip : std::get<TextBlock>(pair.make("text", wish).panels.at(0).content).chips)
            tokens += chip.values.size();
        return tokens;
    };
    FigureOptions text;
    text.tower = Tower::cross;
    text.key = 6;
    CHECK(chips(text) == kTarget);
    CHECK(pair.make("text", text).title ==
          "Who looks at token 6 “s6”, mean over the heads of every layer, cross-attention");
    text.key.reset();
    text.query = 2;
    CHECK(chips(text) == kSource);
    CHECK(pair.make("lines", text).panels.size() == 1);

    const store::AnalysisHeader made = header();
    const std::vector<Site>& sites = made.sites;
    CHECK(tower_of(sites, 0) == Tower::encoder);
    CHECK(tower_of(sites, 1) == Tower::decoder);
    CHECK(tower_of(sites, 2) == Tower::cross);
    CHECK(tower_of(std::span(sites).first(2), 1) == Tower::any);
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "core/figures/make_figure.h"
#include "core/figures/options/option_list.h"
#include "core/store/analysis/analysis_file.h"
#include "kernels/statistics.h"
#include "tests/core/figures/figure_files.h"
#include "tests/core/figures/recipe_figures.h"
#include "tests/core/store/synthetic_analysis.h"

using namespace headscope;
using namespace headscope::figures;
using tests::chosen;
using tests::lines;
using tests::make;
using tests::noted;
using tests::refusal;
using Folder = tests::FigureFiles;

TEST_CASE("Every recipe is listed, unknown ones are refused with the list", "[figures]") {
    std::set<std::string> names;
    for (const Recipe* recipe : recipes()) {
        names.insert(recipe->name);
        CHECK(!recipe->description.empty());
        CHECK(!recipe->needs.empty());
        for (const auto& option : recipe->options) {
            INFO(recipe->name << " " << option);
            CHECK(find_figure_option(option) != nullptr);
        }
    }
    CHECK(names == std::set<std::string>{"ablation",
                                         "ablation-heads",
                                         "attention",
                                         "attribution",
                                         "generation",
                                         "benchmark",
                                         "bias",
                                         "branch-weights",
                                         "cache-error",
                                         "circuits",
                                         "column-mass",
                                         "context-perplexity",
                                         "corpus-head",
                                         "corpus-scatter",
                                         "cost",
                                         "difference",
                                         "experts",
                                         "hash",
                                         "head-embeddings",
                                         "head-kinds",
                                         "indicators",
                                         "knockout",
                                         "latency",
                                         "lens",
                                         "lines",
                                         "longbench",
                                         "loss",
                                         "mass",
                                         "massive-activations",
                                         "offsets",
                                         "patch-heads",
                                         "patch-layers",
                                         "position-perplexity",
                                         "radar",
                                         "retention",
                                         "ruler",
                                         "scaling",
                                         "scores",
                                         "sink-rate",
                                         "states",
                                         "steering",
                                         "tasks",
                                         "tensors",
                                         "text",
                                         "thumbnails",
                                         "timeline",
                                         "token-types",
                                         "value-norms"});
    CHECK(refusal("pie", {}).find("radar, scores, attention, indicators, ") != std::string::npos);
    CHECK(!refusal("radar", {}).empty());
}

TEST_CASE("The radar follows the paper's display rule over all layers of all models", "[figures][radar]") {
    const Folder folder;
    tests::SyntheticAnalysis wish;
    const auto a = folder.analysis("a", wish);
    wish.seed = 2;
    wish.model_name = "other";
    wish.layers = 5;
    const auto b = folder.analysis("b", wish);
    const auto figure = make("radar", {a, b});
    CHECK(figure.column_labels == std::vector<std::string>{"synthetic", "other"});
    double low = 1, high = 0;
    std::size_t series = 0;
    for (const auto& panel : figure.panels) {
        const auto& radar = std::get<Radar>(panel.content);
        CHECK(radar.spokes == std::vector<std::string>{"H", "C", "HD", "LF0", "LF1", "LF2", "LF3", "S"});
        for (const auto& one : radar.series) {
            ++series;
            low = std::min(low, one.values[0]);
            high = std::max(high, one.values[0]);
        }
    }
    CHECK(series == 8);
    CHECK(low == 0);
    CHECK(high == 1);

    // Absolute spokes of a's layer 1, by hand.
    const auto sink = a->indicator("sink");
    const auto focus = a->indicator("local_focus");
    double mean_sink = 0, mean_focus = 0;
    for (std::size_t h = 0; h < 4; ++h) {
        mean_sink += sink.data[4 + h] / 4;
        mean_focus += focus.data[(4 + h) * 4 + 2] / 4;
    }
    const auto one = make("radar", {a}, chosen(1, {}, {}));
    REQUIRE(one.panels.size() == 1);
    const auto& values = std::get<Radar>(one.panels[0].content).series.at(0).values;
    CHECK(values[7] == Approx(mean_sink).epsilon(1e-12));
    CHECK(values[5] == Approx(2 * mean_focus).epsilon(1e-12));
    CHECK(lines(figure_csv(figure)) == 1 + 8 * 8);
    CHECK(figure_csv(one).starts_with("model,layer,site,indicator,value,displayed\r\nsynthetic,1,1,entropy,"));
}

TEST_CASE("Logit ridges hold all scores: areas on the drawn axis are shares", "[figures][logits]") {
    const Folder folder;
    tests::SyntheticAnalysis wish;
    wish.lengths = {600};
    const auto file = folder.analysis("a", wish);
    const auto layers = make("logits", {file});
    REQUIRE(layers.panels.size() == 1);
    const auto& ridges = std::get<Ridges>(layers.panels[0].content);
    REQUIRE(ridges.ridges.size() == 3);
    CHECK(layers.panels[0].x.scale == ScaleKind::symmetric_log);
    for (const auto& ridge : ridges.ridges) {
        const auto& whole = kernels::histogram_edges();
        double area = 0;
        for (std::size_t b = 0; b < ridge.heights.size(); ++b) {
            CHECK(ridge.edges[b + 1] >= ridge.edges[b]);
            if (!(ridge.heights[b] > 0)) continue;
            CHECK(ridge.edges[b] >= whole[b]);
            CHECK(ridge.edges[b + 1] <= whole[b + 1]);
            area += ridge.heights[b] *
                    (scaled(ScaleKind::symmetric_log, whole[b + 1], 8) - scaled(ScaleKind::symmetric_log, whole[b], 8));
        }
        // The made-up extremes leave out what lies beyond four deviations, 6e-5 of a normal distribution.
        CHECK(area == Approx(1).epsilon(1e-4));
        CHECK(ridge.minimum < ridge.mean);
        CHECK(ridge.mean < ridge.maximum);
        CHECK(ridge.notes.size() == 3);
    }
    const auto heads = make("logits", {file}, chosen(2, {}, {}));
    CHECK(std::get<Ridges>(heads.panels[0].content).ridges.size() == 4);
    CHECK(heads.panels[0].y.label == "head");
    CHECK(lines(figure_csv(heads)) == 1 + 4 * kernels::kHistogramBins);
    // Exactly, bin by bin: an extreme just past an edge must not turn the few scores of a sliver into a spike.
    const auto histogram = file->histogram(0, 2);
    for (std::size_t h = 0; h < 4; ++h) {
        const auto& ridge = std::get<Ridges>(heads.panels[0].content).ridges[h];
        const auto* counts = &histogram.data[h * kernels::kHistogramBins];
        const double total = std::accumulate(counts, counts + kernels::kHistogramBins, 0.0);
        for (std::size_t b = 1; b + 1 < ridge.heights.size(); ++b) {
            if (!(ridge.heights[b] > 0)) continue;
            const auto& whole = kernels::histogram_edges();
            const double width =
                scaled(ScaleKind::symmetric_log, whole[b + 1], 8) - scaled(ScaleKind::symmetric_log, whole[b], 8);
            CHECK(ridge.heights[b] * width * total == Approx(counts[b]).epsilon(1e-9));
        }
    }
}

TEST_CASE("Infinite and undefined scores are named and spoil no axis", "[figures][logits]") {
    const Folder folder;
    const tests::SyntheticAnalysis wish;
    const auto path = folder.path() / "i.headscope.h5";
    {
        store::AnalysisWriter writer(path, tests::synthetic_header(wish));
        for (std::int32_t layer = 0; layer < 3; ++layer) {
            auto st = tests::synthetic_statistics(wish, 24, layer, 1);
            if (layer == 1) st.score_maximum[2] = INFINITY;
            if (layer == 2) st.score_minimum[0] = st.score_maximum[0] = st.score_mean[0] = NAN;
            writer.write_site(0, layer, st, 0);
        }
        tests::write_synthetic_output(writer, wish, 0);
        writer.publish();
    }
    const auto figure = make("logits", {store::AnalysisFile::open(path)});
    CHECK(noted(figure, "Infinite or undefined scores in layer 1, 2;"));
    REQUIRE(figure.panels.at(0).x.range.has_value());
    CHECK(std::abs(figure.panels[0].x.range->first) < 100);
    CHECK(figure.panels[0].x.range->second < 100);
    for (const auto& ridge : std::get<Ridges>(figure.panels[0].content).ridges) {
        for (const double height : ridge.heights) CHECK(std::isfinite(height));
    }
}

TEST_CASE("Indicators: one named, or all as small multiples", "[figures][indicators]") {
    const Folder folder;
    const auto file = folder.analysis("a", {});
    FigureOptions options;
    options.indicator = "sink";
    const auto one = make("indicators", {file}, options);
    REQUIRE(one.panels.size() == 1);
    const auto& map = std::get<HeatMap>(one.panels[0].content);
    CHECK(map.rows == 3);
    CHECK(map.columns == 4);
    CHECK(map.values[5] == Approx(file->indicator("sink").data[5]));
    CHECK(lines(figure_csv(one)) == 1 + 12);

    const auto all = make("indicators", {file});
    CHECK(all.panels.size() == 14);  // local focus is four
    CHECK(noted(all, "Left out, as zero everywhere: Sparsity"));
    CHECK(noted(all, "Learned sink"));  // NaN throughout: named, not drawn
    const auto diversity = std::find_if(all.panels.begin(), all.panels.end(),
                                        [](const Panel& p) { return p.title.starts_with("Head diversity"); });
    REQUIRE(diversity != all.panels.end());
    CHECK(std::get<HeatMap>(diversity->content).columns == 1);

    // Logit summaries, and one distance of local focus, are drawn when named.
    const auto logits = [&](const std::string& name, const store::Values& values, std::size_t width, std::size_t pick) {
        options.indicator = name;
        const auto figure = make("indicators", {file}, options);
        REQUIRE(figure.panels.size() == 1);
        const auto& cells = std::get<HeatMap>(figure.panels[0].content);
        REQUIRE(cells.values.size() == 12);
        for (std::size_t i = 0; i < 12; ++i)
            CHECK(cells.values[i] == Approx(values.data[i * width + pick]).epsilon(1e-6));
        CHECK(std::get<std::vector<std::string>>(figure.table().columns[4].values)[0] == name);
        return figure.title;
    };
    CHECK(logits("score_maximum", file->score_statistic("maximum"), 1, 0) == "Largest score");
    CHECK(logits("score_variance", file->score_statistic("variance"), 1, 0) == "Score variance");
    CHECK(logits("above_100", file->score_statistic("above"), 3, 1) == "Scores beyond 100");
    const auto& distances = file->header().local_distances;
    REQUIRE(distances.size() == 4);
    CHECK(logits("local_focus_" + std::to_string(distances[2]), file->indicator("local_focus"), 4, 2) ==
          "Local focus " + std::to_string(distances[2]));

    options.indicator = "charm";
    const auto words = refusal("indicators", {file}, options);
    CHECK(words.find("score_maximum") != std::string::npos);
    CHECK(words.find("entropy, ") != std::string::npos);
    CHECK(words.find("charm") != std::string::npos);
}

TEST_CASE("The radar says where there is no matrix, and how sequences differ", "[figures][radar]") {
    const Folder folder;
    tests::SyntheticAnalysis wish;
    wish.lengths = {24, 20};
    const auto path = folder / "a.headscope.h5";
    store::AnalysisHeader header = tests::synthetic_header(wish);
    header.sites[1].has_matrix = false;
    {
        store::AnalysisWriter writer(path, header);
        for (const std::int64_t s : {0, 1})
            for (const std::int32_t layer : {0, 2}) tests::write_synthetic_layer(writer, wish, s, layer);
        writer.publish();
    }
    const auto file = store::AnalysisFile::open(path);
    const auto figure = make("radar", {file});
    REQUIRE(figure.panels.size() == 3);
    const auto chart = [](const FigureData& of, std::size_t i) { return std::get<Radar>(of.panels.at(i).content); };
    CHECK(chart(figure, 0).nothing.empty());
    CHECK(chart(figure, 0).series.at(0).deviations.empty());
    CHECK(chart(figure, 1).nothing == "no attention matrix");
    FigureOptions options;
    options.all_sequences = true;
    const auto all = make("radar", {file}, options);
    const auto sink = file->indicator("sink");
    double mean[2] = {0, 0};
    for (std::size_t s = 0; s < 2; ++s)
        for (std::size_t h = 0; h < 4; ++h) mean[s] += sink.data[(s * 3 + 2) * 4 + h] / 4;
    const auto series = chart(all, 2).series.at(0);
    CHECK(series.values.at(7) == Approx((mean[0] + mean[1]) / 2));
    CHECK(series.deviations.at(7) == Approx(std::abs(mean[0] - mean[1]) / std::sqrt(2.0)));
    CHECK(noted(all, "standard deviation over the sequences"));

    // A layer that a run did not reach is not one without a matrix.
    store::AnalysisWriter writer(folder / "b.headscope.h5", header);
    tests::write_synthetic_layer(writer, wish, 0, 0);
    const auto partial = make("radar", {store::AnalysisFile::open(writer.partial_path())});
    CHECK(chart(partial, 1).nothing == "no attention matrix");
    CHECK(chart(partial, 2).nothing == "not computed");
}

TEST_CASE("Layers, heads and sequences that a file lacks are refused with what it has", "[figures]") {
    const Folder folder;
    tests::SyntheticAnalysis wish;
    wish.lengths = {24, 7};
    const auto file = folder.analysis("a", wish);
    for (const std::string recipe : {"radar", "logits", "indicators", "thumbnails"}) {
        CHECK(refusal(recipe, {file}, chosen(3, {}, {})).find("0 to 2") != std::string::npos);
        CHECK(refusal(recipe, {file}, chosen({}, 4, {})).find("0 to 3") != std::string::npos);
        CHECK(refusal(recipe, {file}, chosen({}, {}, 2)).find("0 to 1") != std::string::npos);
        CHECK(make(recipe, {file}, chosen({}, {}, 1)).panels.size() > 0);
    }
}

TEST_CASE("Figures of a partial file draw what is done and say so", "[figures]") {
    const Folder folder;
    const tests::SyntheticAnalysis wish;
    const auto path = folder.path() / "killed.headscope.h5";
    auto writer = std::make_unique<store::AnalysisWriter>(path, tests::synthetic_header(wish));
    tests::write_synthetic_layer(*writer, wish, 0, 0);
    const auto copy = folder.path() / "copy.headscope.h5";
    std::filesystem::copy_file(writer->partial_path(), copy);
    writer.reset();
    const auto file = store::AnalysisFile::open(copy);
    REQUIRE(!file->complete());
    for (const std::string recipe : {"radar", "logits", "indicators", "thumbnails"}) {
        const auto figure = make(recipe, {file});
        CHECK(noted(figure, "partial file, 1 of 3 layers done"));
        CHECK(!figure_csv(figure).empty());
    }
}

TEST_CASE("The largest models stay within reason", "[figures]") {
    const Folder folder;
    tests::SyntheticAnalysis wish;
    wish.layers = 48;
    wish.heads = 64;
    wish.key_value_heads = 8;
    wish.lengths = {150};
    const auto file = folder.analysis("large", wish);
    const auto figure = make("thumbnails", {file});
    const auto& mosaic = std::get<Mosaic>(figure.panels.at(0).content);
    CHECK(mosaic.values.size() < 7'000'000);
    CHECK(mosaic.size >= 30);
    CHECK(make("radar", {file}).panels.size() == 48);
    wish.layers = 90;
    wish.heads = wish.key_value_heads = 2;
    const auto deep = make("thumbnails", {folder.analysis("deep", wish)});
    CHECK(deep.widest_mm * deep.panel_aspect <= 250);
    CHECK(std::get<Ridges>(make("logits", {file}).panels[0].content).ridges.size() == 48);
}

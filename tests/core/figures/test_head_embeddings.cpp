// SPDX-License-Identifier: GPL-3.0-or-later
// Head embeddings on made-up analyses whose norms and cosines are known.
#include <catch2/catch.hpp>

#include <cmath>

#include "tests/core/figures/figure_files.h"
#include "tests/core/store/synthetic_heads.h"

using namespace headscope;
using namespace headscope::figures;
using namespace headscope::tests;
using File = std::shared_ptr<store::AnalysisFile>;

namespace {

File sample(const FigureFiles& folder, const std::string& name = "a") {
    const auto path = folder / (name + ".headscope.h5");
    write_head_embeddings_analysis(path);
    return store::AnalysisFile::open(path);
}

}  // namespace

TEST_CASE("Head embeddings: norms of every head, cosines of each two", "[figures][head-embeddings]") {
    const FigureFiles folder;
    const auto file = sample(folder);
    CHECK(file->header().head_embedding_size == 8);
    const auto figure = make_figure("head-embeddings", std::vector{file}, {});
    REQUIRE(figure.panels.size() == 4);
    CHECK(figure.panels[1].title == "Norms of key embeddings");
    // Four sites, of which the second has no such embeddings.
    REQUIRE(figure.panels[0].y.ticks.size() == 3);
    CHECK(figure.panels[0].y.ticks[0].label == "encoder 0");
    CHECK(figure.panels[0].y.ticks[2].label == "decoder 2 cross");
    const auto& norms = std::get<HeatMap>(figure.panels[1].content);
    CHECK(norms.rows == 3);
    CHECK(norms.columns == 4);
    // Head h's embedding of part p at site s is (s + 1) (p + 1) (h + 1) long.
    CHECK(norms.values[2 * 4 + 3] == Approx(4 * 2 * 4));
    CHECK(norms.colours.maximum == Approx(4 * 3 * 4));
    const auto& cosines = std::get<Mosaic>(figure.panels[3].content);
    CHECK(cosines.rows == 3);
    CHECK(cosines.columns == 3);
    CHECK(cosines.size == 4);
    // And its direction is turned by 30 degrees a head, the other way round of values.
    CHECK(cosines.values[0] == 1);
    CHECK(cosines.values[1] == Approx(std::sqrt(0.75)));
    CHECK(cosines.values[3] == Approx(0).margin(1e-6));
    REQUIRE(figure.text_table);
    REQUIRE(figure.text_table->rows.size() == 3);
    CHECK(figure.text_table->header.back() == "head diversity");
    CHECK(figure.text_table->rows[0][1] == "2.5");
    const double mean = (3 * std::sqrt(0.75) + 2 * 0.5 + 0) / 6;
    CHECK(std::stod(figure.text_table->rows[0][4]) == Approx(mean).epsilon(1e-3));
    CHECK(std::stod(figure.text_table->rows[0].back()) == Approx(0.125));
    const std::string csv = figure_csv(figure);
    CHECK(csv.starts_with("model,layer,site,part,head,norm,other,cosine,head_diversity"));
    CHECK(lines(csv) == 1 + 3 * 3 * 16);
}

TEST_CASE("Head embeddings of one layer: a square of cosines for each of its sites", "[figures][head-embeddings]") {
    const FigureFiles folder;
    FigureOptions options;
    options.layer = 2;
    const auto figure = make_figure("head-embeddings", std::vector{sample(folder)}, options);
    REQUIRE(figure.panels.size() == 6);
    CHECK(figure.panels[5].title == "Value, decoder layer 2, cross-attention");
    const auto& square = std::get<HeatMap>(figure.panels[5].content);
    CHECK(square.rows == 4);
    CHECK(square.values[2] == Approx(0.5));
    CHECK(figure.columns == 3);
    options.layer = 1;
    CHECK(refusal("head-embeddings", {sample(folder)}, options).find("mhe_add") != std::string::npos);
    CHECK(refusal("head-embeddings", {folder.analysis("plain", {})}).find("mhe_mul") != std::string::npos);
    // Two models stand beside each other.
    const auto two = make_figure("head-embeddings", std::vector{sample(folder), sample(folder, "b")}, {});
    CHECK(two.panels.size() == 8);
    CHECK(two.text_table->header.front() == "model");
}

// SPDX-License-Identifier: GPL-3.0-or-later
// The softmax fraction of NAtS-L's heads and the types of their chunks.
#include <cmath>

#include "core/figures/token_types.h"
#include "tests/core/figures/figure_files.h"
#include "tests/core/store/synthetic_types.h"

using namespace headscope;
using namespace headscope::figures;
using File = std::shared_ptr<store::AnalysisFile>;

namespace {

File typed(const test::TemporaryFolder& folder, const std::string& name, const tests::SyntheticTypes& wish = {}) {
    const auto path = folder / (name + ".headscope.h5");
    tests::write_synthetic_types(path, wish);
    return store::AnalysisFile::open(path);
}

/// Two sequences of 3 and 2 chunks (the last ones partial), layers 0 and 2 of three typed, four heads.
tests::SyntheticTypes two_texts() {
    tests::SyntheticTypes wish;
    wish.plain.lengths = {20, 9};
    return wish;
}

}  // namespace

TEST_CASE("Softmax fractions are layers by heads; layers without types have no row", "[figures][types]") {
    const tests::FigureFiles folder;
    const auto figure = make_figure("token-types", std::vector{typed(folder, "a", two_texts())}, {});
    REQUIRE(figure.panels.size() == 1);
    const auto& map = std::get<HeatMap>(figure.panels[0].content);
    REQUIRE(map.rows == 2);
    REQUIRE(map.columns == 4);
    // Head h of layer l has its first (h + l) mod 4 of three chunks softmax.
    const std::vector<double> wanted{0, 1.0 / 3, 2.0 / 3, 1, 2.0 / 3, 1, 0, 1.0 / 3};
    for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(map.values[i] == Approx(wanted[i]));
    CHECK(figure.panels[0].y.ticks[1].label == "2");
    CHECK(map.colours.minimum == 0);
    CHECK(map.colours.maximum == 1);
    const std::string csv = figure_csv(figure);
    CHECK(csv.starts_with("file,sequence,layer,head,softmax_fraction,chunks\r\nsynthetic,0,0,0,0,3\r\n"));
    CHECK(csv.find("synthetic,0,2,1,1,3\r\n") != std::string::npos);
    CHECK(tests::lines(csv) == 9);
}

TEST_CASE("Files and sequences stand side by side on one scale, narrower layers end earlier", "[figures][types]") {
    const tests::FigureFiles folder;
    auto other = two_texts();
    other.plain.model_name = "other";
    other.plain.heads = 2;
    FigureOptions options;
    options.all_sequences = true;
    const auto figure =
        make_figure("token-types", std::vector{typed(folder, "a", two_texts()), typed(folder, "b", other)}, options);
    REQUIRE(figure.panels.size() == 4);
    CHECK(figure.shared_colours);
    CHECK(figure.panels[0].title == "synthetic, sequence 0");
    CHECK(figure.panels[3].title == "other, sequence 1");
    CHECK(std::get<HeatMap>(figure.panels[2].content).columns == 2);
    CHECK_FALSE(figure.share_x);
    // Sequence 1 has two chunks: head 0 of layer 0 one of them, head 2 all.
    const auto& second = std::get<HeatMap>(figure.panels[1].content);
    CHECK(second.values[0] == 0.5F);
    CHECK(second.values[2] == 1.0F);
    CHECK(tests::lines(figure_csv(figure)) == 1 + 2 * 2 * (4 + 2));
}

TEST_CASE("A layer with fewer heads than another leaves the rest blank", "[figures][types]") {
    const tests::FigureFiles folder;
    tests::SyntheticTypes wish = two_texts();
    wish.plain.lengths = {20};
    auto header = tests::typed_header(wish);
    auto& narrow = header.sites[1];  // layer 0's linear branch
    REQUIRE(narrow.branch == "linear");
    narrow.heads = narrow.key_value_heads = 2;
    const auto path = folder / "narrow.headscope.h5";
    {
        store::AnalysisWriter writer(path, header);
        writer.write_token_types(0, 1, std::vector<std::int8_t>{0, 0, 1, 1, 1, 1}, std::vector<double>{2.0 / 3, 0}, 2);
        writer.publish();
    }
    const auto figure = make_figure("token-types", std::vector{store::AnalysisFile::open(path)}, {});
    const auto& map = std::get<HeatMap>(figure.panels[0].content);
    REQUIRE(map.columns == 4);
    CHECK(map.values[0] == Approx(2.0 / 3));
    CHECK(map.values[1] == 0.0F);
    for (std::size_t i = 2; i < 8; ++i) CHECK(std::isnan(map.values[i]));  // and layer 2 was not reached
}

TEST_CASE("Of very many sequences the mean is drawn", "[figures][types]") {
    const tests::FigureFiles folder;
    tests::SyntheticTypes wish;
    wish.plain.lengths.assign(13, 16);
    wish.type = [](std::int64_t s, int, std::int64_t head, std::int64_t) { return head == 1 || s == 0 ? 0 : 1; };
    FigureOptions options;
    options.all_sequences = true;
    const auto figure = make_figure("token-types", std::vector{typed(folder, "many", wish)}, options);
    REQUIRE(figure.panels.size() == 1);
    const auto& map = std::get<HeatMap>(figure.panels[0].content);
    CHECK(map.values[0] == Approx(1.0 / 13));
    CHECK(map.values[1] == 1.0F);
    CHECK(tests::noted(figure, "the mean is drawn"));
    CHECK(tests::lines(figure_csv(figure)) == 1 + 13 * 2 * 4);
}

TEST_CASE("One layer has the type of each chunk, one head the text in its colours", "[figures][types]") {
    const tests::FigureFiles folder;
    const auto file = typed(folder, "a", two_texts());
    FigureOptions options;
    options.layer = 2;
    const auto layer = make_figure("token-types", std::vector{file}, options);
    const auto& map = std::get<HeatMap>(layer.panels[0].content);
    REQUIRE(map.rows == 4);
    REQUIRE(map.columns == 3);
    CHECK(map.values[0] == 1.0F);  // softmax, softmax, linear
    CHECK(map.values[2] == 0.0F);
    CHECK(layer.panels[0].x.label == "chunk of 8 tokens");
    CHECK(
        figure_csv(layer).starts_with("file,sequence,layer,head,chunk,first_token,type\r\n"
                                      "synthetic,0,2,0,0,0,softmax\r\nsynthetic,0,2,0,1,8,softmax\r\n"
                                      "synthetic,0,2,0,2,16,linear\r\n"));
    options.head = 0;
    const auto text = make_figure("token-types", std::vector{file}, options);
    std::vector<float> values;
    for (const auto& chip : std::get<TextBlock>(text.panels[0].content).chips)
        values.insert(values.end(), chip.values.begin(), chip.values.end());
    REQUIRE(values.size() == 20);
    CHECK(values[15] == 1.0F);
    CHECK(values[16] == 0.0F);
    options.from_key = 15;
    const auto part = make_figure("token-types", std::vector{file}, options);
    CHECK(tests::noted(part, "Tokens 15 to 19 of 20"));
}

TEST_CASE("What has no types says what records them", "[figures][types]") {
    const tests::FigureFiles folder;
    const auto plain = folder.analysis("plain", {});
    CHECK(tests::refusal("token-types", {plain}).find("a model with NAtS-L layers") != std::string::npos);
    const auto file = typed(folder, "a", two_texts());
    FigureOptions options;
    options.layer = 1;
    CHECK(tests::refusal("token-types", {file}, options).find("that has token types") != std::string::npos);
    options.layer = 2;
    options.head = 4;
    CHECK(tests::refusal("token-types", {file}, options).find("expected 0 to 3") != std::string::npos);
    options.layer.reset();
    CHECK(tests::refusal("token-types", {file}, options).find("--layer") != std::string::npos);
    FigureOptions part;
    part.from_key = 3;
    CHECK(tests::refusal("token-types", {file}, part).find("--from-key") != std::string::npos);
}

TEST_CASE("Softmax heads have the types of their group's linear head", "[figures][types]") {
    const auto header = tests::typed_header(two_texts());
    CHECK(typed_sites(header) == std::vector<std::int64_t>{1, 4});
    CHECK(typed_head(header, 0, 0) == TypedHead{1, 0});
    CHECK(typed_head(header, 0, 3) == TypedHead{1, 1});
    CHECK(typed_head(header, 0, 7) == TypedHead{1, 3});
    CHECK(typed_head(header, 4, 2) == TypedHead{4, 2});
    CHECK_FALSE(typed_head(header, 2, 0));
    CHECK(typed_sites(tests::synthetic_header({})).empty());
    CHECK(chunk_count(header, 16) == 2);
    CHECK(chunk_count(header, 17) == 3);
    CHECK(types_of_tokens({{1, 2}, {0, 1}}, 0, 2, 5) == std::vector<std::int32_t>{0, 0, 1, 1, -1});
}

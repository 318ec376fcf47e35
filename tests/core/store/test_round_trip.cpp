// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <cmath>

#include "core/base/error.h"
#include "core/store/analysis/analysis_file.h"
#include "core/store/analysis/analysis_writer.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"
#include "tests/core/store/synthetic_recurrent.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using Shape = std::vector<std::int64_t>;

namespace {

bool same(double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b));
}

tests::SyntheticAnalysis everything() {
    tests::SyntheticAnalysis a;
    a.lengths = {24, 1, 17};
    a.record = {true, true, true, true, false, true};
    return a;
}

}  // namespace

TEST_CASE("The header comes back as it was given", "[store]") {
    const auto a = everything();
    const test::TemporaryFolder folder;
    const auto path = folder / "a.headscope.h5";
    tests::write_synthetic_analysis(path, a);
    const auto file = store::AnalysisFile::open(path);
    const auto expected = tests::synthetic_header(a);
    const auto& found = file->header();
    CHECK(file->complete());
    CHECK(found.program_version == expected.program_version);
    CHECK(found.created == expected.created);
    CHECK(found.model_name == expected.model_name);
    CHECK(found.model_type == expected.model_type);
    CHECK(found.model_sha256 == expected.model_sha256);
    CHECK(found.config_json == expected.config_json);
    CHECK(found.settings_json == expected.settings_json);
    CHECK(found.seed == expected.seed);
    CHECK(found.mixers == expected.mixers);
    CHECK(found.max_positions == expected.max_positions);
    CHECK(found.vocabulary == expected.vocabulary);
    CHECK(found.hidden_boundaries == expected.hidden_boundaries);
    CHECK(found.local_distances == expected.local_distances);
    CHECK(found.row_step() == 1);
    CHECK(found.longest() == 24);
    CHECK(found.most_heads() == 4);
    CHECK(found.measured_layers.empty());
    CHECK((found.record.maps && found.record.attention && found.record.states && found.record.logits));
    CHECK(found.record.experts);
    CHECK(found.experts == 6);
    CHECK(found.experts_per_token == 2);
    REQUIRE(found.sites.size() == expected.sites.size());
    for (std::size_t i = 0; i < found.sites.size(); ++i) {
        CHECK(found.sites[i].layer == expected.sites[i].layer);
        CHECK(found.sites[i].stack == expected.sites[i].stack);
        CHECK(found.sites[i].kind == expected.sites[i].kind);
        CHECK(found.sites[i].branch == expected.sites[i].branch);
        CHECK(found.sites[i].key_value_heads == expected.sites[i].key_value_heads);
        CHECK(found.sites[i].value_size == expected.sites[i].value_size);
        CHECK(found.sites[i].causal == expected.sites[i].causal);
        CHECK(found.sites[i].key_stream == "tokens");
    }
    REQUIRE(found.sequences.size() == 3);
    for (std::size_t s = 0; s < 3; ++s) {
        CHECK(found.sequences[s].ids == expected.sequences[s].ids);
        CHECK(found.sequences[s].offsets == expected.sequences[s].offsets);
        CHECK(found.sequences[s].text == expected.sequences[s].text);
    }
    CHECK(found.sequences[0].pieces[1] == "<0xE6>");  // half a character is spelled out
    CHECK(found.sequences[0].pieces[8] == " \xE6\x9C\x88");
}

TEST_CASE("Every value comes back where it was written, and NaN where nothing was", "[store]") {
    const auto a = everything();
    const test::TemporaryFolder folder;
    const auto path = folder / "a.headscope.h5";
    tests::write_synthetic_analysis(path, a);
    const auto file = store::AnalysisFile::open(path);
    CHECK(file->indicators().size() == 13);
    const auto entropy = file->indicator("entropy");
    const auto focus = file->indicator("local_focus");
    const auto diversity = file->indicator("head_diversity");
    const auto above = file->score_statistic("above");
    REQUIRE(entropy.shape == Shape{3, 3, 4});
    REQUIRE(focus.shape == Shape{3, 3, 4, 4});
    REQUIRE(diversity.shape == Shape{3, 3});
    REQUIRE(above.shape == Shape{3, 3, 4, 3});
    REQUIRE(file->histogram_edges().size() == kernels::kHistogramBins + 1);
    REQUIRE(std::isinf(file->histogram_edges().front()));
    for (std::int64_t s = 0; s < 3; ++s) {
        const std::int64_t length = a.lengths[static_cast<std::size_t>(s)];
        for (std::int32_t site = 0; site < 3; ++site) {
            REQUIRE(file->site_done(s, site));
            const auto st = tests::synthetic_statistics(a, length, site, a.seed + 17 * static_cast<std::uint64_t>(s));
            const auto at = static_cast<std::size_t>(s * 3 + site);
            for (std::size_t h = 0; h < 4; ++h) REQUIRE(entropy.data[at * 4 + h] == st.entropy[h]);
            for (std::size_t i = 0; i < 16; ++i) REQUIRE(same(focus.data[at * 16 + i], st.local_focus[i]));
            REQUIRE(diversity.data[at] == st.head_diversity[0]);
            for (std::size_t i = 0; i < 12; ++i)
                REQUIRE(above.data[at * 12 + i] == static_cast<double>(st.score_above[i]));

            const auto mass = file->column_mass(s, site);
            REQUIRE(mass.shape == Shape{4, 24});
            for (std::int64_t h = 0; h < 4; ++h) {
                for (std::int64_t j = 0; j < 24; ++j) {
                    const double found = mass.data[static_cast<std::size_t>(h * 24 + j)];
                    if (j < length)
                        REQUIRE(found == st.column_mass[static_cast<std::size_t>(h * length + j)]);
                    else
                        REQUIRE(std::isnan(found));
                }
            }
            const auto histogram = file->histogram(s, site);
            REQUIRE(histogram.shape == Shape{4, kernels::kHistogramBins});
            for (std::size_t i = 0; i < st.histogram.size(); ++i)
                REQUIRE(histogram.data[i] == static_cast<double>(st.histogram[i]));

            const auto thumbnail = file->thumbnail("maximum", s, site);
            REQUIRE(thumbnail.shape == Shape{4, 24, 24});
            for (std::int64_t h = 0; h < 4; ++h) {
                for (std::int64_t i = 0; i < 24; ++i) {
                    for (std::int64_t j = 0; j < 24; ++j) {
                        const double found = thumbnail.data[static_cast<std::size_t>((h * 24 + i) * 24 + j)];
                        if (i >= length || j >= length)
                            REQUIRE(std::isnan(found));
                        else
                            REQUIRE(
                                found ==
                                double{st.thumbnail_maximum[static_cast<std::size_t>((h * length + i) * length + j)]});
                    }
                }
            }
            const auto map = file->map(s, site);
            REQUIRE(map.has_value());
            const auto made = tests::synthetic_map(
                a, length, a.seed + 17 * static_cast<std::uint64_t>(s) + static_cast<std::uint64_t>(site));
            REQUIRE(map->query == made.query);
            REQUIRE(map->key == made.key);
            REQUIRE(map->row_constant == made.row_constant);
            REQUIRE(map->rule.scale == made.rule.scale);
            const auto rows = file->attention_rows(s, site, 2, length - 1, 1);
            REQUIRE(rows.has_value());
            REQUIRE(rows->shape == Shape{1, length});
            for (const double weight : rows->data) REQUIRE(weight == Approx(1.0 / static_cast<double>(length)));

            const auto key_norm = file->state("k_norm", s, site);
            REQUIRE(key_norm.has_value());
            REQUIRE(key_norm->shape == Shape{4, 24});
            REQUIRE(key_norm->data[static_cast<std::size_t>(24 + length - 1)] == 1.0 + site);
            REQUIRE(std::isnan(key_norm->data[2 * 24]));  // a head that keys lack
        }
        const auto loss = file->loss(s);
        REQUIRE(loss.shape == Shape{24});
        for (std::int64_t i = 0; i < 24; ++i) {
            REQUIRE(std::isnan(loss.data[static_cast<std::size_t>(i)]) == (i >= length - 1));
        }
        const auto logits = file->logits(s, 0, 24);
        REQUIRE(logits.has_value());
        REQUIRE(logits->shape == Shape{24, 32});
        for (std::int64_t i = 0; i < 24; ++i)
            REQUIRE(std::isnan(logits->data[static_cast<std::size_t>(i * 32 + 5)]) == (i >= length));
        REQUIRE(file->state("hidden_norm", s, 3)->data.at(0) == 3.0);
    }
}

TEST_CASE("What was not recorded is absent, and a site that was not measured holds NaN", "[store]") {
    tests::SyntheticAnalysis a;
    a.layers = 3;
    a.measured_layers = {1};
    a.record.maps = true;
    const test::TemporaryFolder folder;
    tests::write_synthetic_analysis(folder / "a.headscope.h5", a);
    const auto file = store::AnalysisFile::open(folder / "a.headscope.h5");
    CHECK_FALSE(file->state("q_norm", 0, 1));
    CHECK_FALSE(file->logits(0, 0, 1));
    CHECK_FALSE(file->attention_rows(0, 1, 0, 0, 1));
    CHECK_FALSE(file->map(0, 0));
    CHECK(file->map(0, 1).has_value());
    CHECK_FALSE(file->site_done(0, 0));
    CHECK(file->site_done(0, 1));
    const auto sink = file->indicator("sink");
    for (std::size_t i = 0; i < sink.data.size(); ++i) CHECK(std::isnan(sink.data[i]) == (i / 4 != 1));
    CHECK_THROWS_AS(file->indicator("no_such"), Error);
    CHECK_THROWS_AS(file->histogram(0, 3), Error);
    CHECK_THROWS_AS(file->histogram(-1, 0), Error);
}

TEST_CASE("An encoder-decoder's streams and sites of unequal size fit in one file", "[store]") {
    tests::SyntheticAnalysis a;
    a.lengths = {7, 5};
    a.layers = 1;
    a.record.maps = a.record.attention = true;
    auto header = tests::synthetic_header(a);
    a.lengths = {11, 4};
    header.streams["source"] = tests::synthetic_header(a).sequences;
    Site cross = header.sites[0];
    cross.kind = "cross";
    cross.stack = "decoder";
    cross.key_stream = "source";
    cross.heads = 2;
    cross.key_value_heads = 1;
    cross.causal = false;
    header.sites.push_back(cross);
    const test::TemporaryFolder folder;
    store::AnalysisWriter writer(folder / "a.headscope.h5", header);
    const std::vector<float> rows(5 * 4, 0.25F);
    writer.write_attention_rows(1, 1, 1, 0, rows, 4);
    writer.publish();
    const auto file = store::AnalysisFile::open(folder / "a.headscope.h5");
    CHECK(file->header().longest() == 11);
    CHECK(file->header().streams.at("source")[1].ids.size() == 4);
    CHECK(file->header().keys(0, file->header().sites[1]) == 11);
    CHECK(file->attention_rows(1, 1, 1, 0, 5)->data == std::vector<double>(20, 0.25));
    CHECK(std::isnan(file->indicator("entropy").data[4 + 3]));
}

TEST_CASE("Lazy Attention's parameters are stored too", "[store]") {
    tests::SyntheticAnalysis a;
    a.layers = 2;
    auto header = tests::synthetic_header(a);
    header.sites[0].bias_first = -2;
    header.sites[0].bias_length = 6;
    header.sites[0].has_offsets = true;
    header.take_parameters();
    const test::TemporaryFolder folder;
    store::AnalysisWriter writer(folder / "a.headscope.h5", header);
    writer.write_parameters(0, std::vector<float>(4, 0.5F), {}, std::vector<float>(24, -1.5F));
    writer.publish();
    const auto file = store::AnalysisFile::open(folder / "a.headscope.h5");
    CHECK(file->parameters("offset")->data[3] == 0.5);
    CHECK(std::isnan(file->parameters("offset")->data[4]));
    CHECK(file->parameters("distance_bias")->shape == Shape{2, 4, 6});
    CHECK(file->parameters("distance_bias")->data[23] == -1.5);
    CHECK(file->header().bias_first == -2);
    CHECK(file->header().has_offsets);
    CHECK_FALSE(file->parameters("slope").has_value());
    CHECK_FALSE(file->token_types(0, 0).has_value());
    CHECK_FALSE(file->header().has_implicit());
}

TEST_CASE("Implicit matrices, types of chunks and weights of branches come back", "[store]") {
    const test::TemporaryFolder folder;
    const tests::RecurrentSample sample;
    tests::write_recurrent_analysis(folder / "a.headscope.h5", sample);
    const auto file = store::AnalysisFile::open(folder / "a.headscope.h5");
    const auto& header = file->header();
    CHECK(header.type_chunk == 8);
    CHECK(header.record.implicit);
    CHECK(header.record.branches);
    CHECK(header.measured_layers.empty());
    std::vector<bool> implicit;
    for (const Site& site : header.sites) implicit.push_back(header.measured_implicit(site));
    CHECK(implicit == std::vector<bool>{false, true, true, false, false});
    CHECK(file->done_sites().size() == 8);

    const auto types = file->token_types(1, tests::kLinearBranch);  // 19 tokens, three chunks; seed 18
    REQUIRE(types.has_value());
    CHECK(types->shape == Shape{4, 3});
    CHECK(types->data == std::vector<double>{0, 0, 1, 0, 0, 0, 1, 1, 1, 0, 1, 1});
    CHECK(file->token_types(1, tests::kSoftmaxBranch)->data == std::vector<double>(12, -1));
    const auto fraction = file->indicator("softmax_fraction");
    CHECK(fraction.data[(1 * 5 + 1) * 4 + 0] == 2.0 / 3);
    CHECK(std::isnan(fraction.data[(1 * 5 + 0) * 4 + 0]));

    const std::int64_t length = 19;
    const auto matrix = tests::synthetic_implicit(4, length, 1 + 17 + 2);
    const auto part = file->implicit(1, tests::kRecurrentSite, 3, {2, 7}, {1, 5});
    REQUIRE(part.has_value());
    for (std::int64_t i = 2; i < 7; ++i)
        for (std::int64_t j = 1; j < 5; ++j)
            CHECK((*part)[static_cast<std::size_t>((i - 2) * 4 + j - 1)] ==
                  matrix[static_cast<std::size_t>((3 * length + i) * length + j)]);
    CHECK(file->implicit_deviation(1, tests::kRecurrentSite) == 1e-6);
    CHECK(std::isnan(file->implicit_deviation(1, tests::kSoftmaxSite)));
    CHECK_FALSE(file->implicit(1, tests::kSoftmaxSite, 0, {0, 1}, {0, 1}).has_value());
    CHECK_THROWS_AS(file->implicit(1, tests::kRecurrentSite, 4, {0, 1}, {0, 1}), Error);
    CHECK_THROWS_AS(file->implicit(1, tests::kRecurrentSite, 0, {0, 20}, {0, 1}), Error);
    const auto statistics = tests::implicit_statistics_of(matrix, 4, length);
    const std::size_t row = (1 * 5 + 2) * 4;
    CHECK(file->indicator("entropy").data[row + 3] == statistics.entropy[3]);
    CHECK(file->indicator("entropy_row_mean").data[row + 3] == statistics.entropy_row_mean[3]);
    CHECK(file->indicator("concentration").data[row + 1] == statistics.concentration[1]);
    CHECK(std::isnan(file->indicator("sink").data[row]));
    CHECK(file->indicator("entropy").data.size() == 2 * 5 * 4);
    CHECK(std::isnan(file->indicator("entropy").data[(1 * 5 + 4) * 4]));  // no matrix at all

    // Up to 128 tokens a thumbnail is the matrix itself, signs and all.
    const auto small = file->thumbnail("maximum", 1, tests::kRecurrentSite);
    CHECK(small.data[static_cast<std::size_t>((3 * 24 + 6) * 24 + 4)] ==
          static_cast<double>(matrix[static_cast<std::size_t>((3 * length + 6) * length + 4)]));
    CHECK(std::isnan(small.data[static_cast<std::size_t>(19)]));

    const auto weights = file->branch_weights(1, tests::kSoftmaxBranch);
    REQUIRE(weights.has_value());
    CHECK(weights->shape == Shape{4, 24, 2});
    CHECK(weights->data[0] + weights->data[1] == Approx(1.0));
    CHECK(std::isnan(weights->data[2 * 19]));
    CHECK(std::isnan(file->branch_weights(1, tests::kSoftmaxSite)->data[0]));
}

TEST_CASE("Thumbnails of implicit matrices are means with signs and the coefficient of greatest magnitude", "[store]") {
    tests::RecurrentSample sample;
    sample.lengths = {130};
    const test::TemporaryFolder folder;
    tests::write_recurrent_analysis(folder / "a.headscope.h5", sample);
    const auto file = store::AnalysisFile::open(folder / "a.headscope.h5");
    const auto matrix = tests::synthetic_implicit(4, 130, 1 + 2);
    const auto mean = file->thumbnail("mean", 0, tests::kRecurrentSite),
               extreme = file->thumbnail("maximum", 0, tests::kRecurrentSite);
    for (const std::int64_t r : {0, 63, 127}) {
        for (const std::int64_t c : {0, 31, 63}) {
            double sum = 0, most = 0, count = 0;
            for (std::int64_t i = 0; i < 130; ++i) {
                for (std::int64_t j = 0; j < 130; ++j) {
                    if (i * 128 / 130 != r || j * 128 / 130 != c) continue;
                    const double value = matrix[static_cast<std::size_t>((130 + i) * 130 + j)];
                    sum += value;
                    ++count;
                    if (std::abs(value) > std::abs(most)) most = value;
                }
            }
            const auto at = static_cast<std::size_t>((128 + r) * 128 + c);
            CHECK(mean.data[at] == Approx(sum / count).margin(1e-7));
            CHECK(extreme.data[at] == most);
        }
    }
}

TEST_CASE("Of a model with recurrent layers some may be measured, and nothing recorded", "[store]") {
    tests::RecurrentSample sample;
    sample.record = {};
    sample.measured_layers = {1, 2};
    const test::TemporaryFolder folder;
    tests::write_recurrent_analysis(folder / "a.headscope.h5", sample);
    const auto file = store::AnalysisFile::open(folder / "a.headscope.h5");
    const auto& header = file->header();
    CHECK_FALSE(header.measured_implicit(header.sites[tests::kLinearBranch]));
    CHECK(header.measured_implicit(header.sites[tests::kRecurrentSite]));
    CHECK(file->done_sites().size() == 4);
    CHECK_FALSE(file->implicit(0, tests::kRecurrentSite, 0, {0, 1}, {0, 1}).has_value());
    CHECK_FALSE(file->branch_weights(0, tests::kSoftmaxBranch).has_value());
    CHECK(file->token_types(0, tests::kLinearBranch)->data == std::vector<double>(12, -1));
    CHECK(std::isnan(file->thumbnail("mean", 0, tests::kRecurrentSite).data[0]));
}

TEST_CASE("Experts of each token come back, and none where a layer has none", "[store]") {
    tests::SyntheticAnalysis a;
    a.lengths = {5, 3};
    a.layers = 3;
    a.record.experts = true;
    const test::TemporaryFolder folder;
    store::AnalysisWriter writer(folder / "a.headscope.h5", tests::synthetic_header(a));
    writer.write_experts(1, 2, std::vector<std::int16_t>{5, 0, 1, 4, 3, 2},
                         std::vector<float>{0.75F, 0.25F, 0.5F, 0.5F, 1.5F, 0.125F});
    writer.publish();
    const auto file = store::AnalysisFile::open(folder / "a.headscope.h5");
    const auto experts = file->experts(1, 2);
    REQUIRE(experts.has_value());
    CHECK(experts->index.shape == Shape{5, 2});
    CHECK(experts->index.data == std::vector<double>{5, 0, 1, 4, 3, 2, -1, -1, -1, -1});
    CHECK(experts->weight.shape == Shape{5, 2});
    CHECK(std::vector<double>(experts->weight.data.begin(), experts->weight.data.begin() + 6) ==
          std::vector<double>{0.75, 0.25, 0.5, 0.5, 1.5, 0.125});
    CHECK(std::isnan(experts->weight.data[6]));
    CHECK(file->experts(1, 1)->index.data == std::vector<double>(10, -1));
    CHECK(std::isnan(file->experts(0, 2)->weight.data[0]));
    CHECK_THROWS_AS(file->experts(0, 3), Error);
    CHECK_THROWS_AS(file->experts(2, 0), Error);
    tests::write_synthetic_analysis(folder / "b.headscope.h5");
    CHECK_FALSE(store::AnalysisFile::open(folder / "b.headscope.h5")->experts(0, 0).has_value());
}

TEST_CASE("A file of version 1 opens: texts of fixed length, thumbnails in float16", "[store]") {
    const auto file = store::AnalysisFile::open(test::golden_file("older/version-1.headscope.h5"));
    REQUIRE(file->header().sequences.size() == 1);
    CHECK(file->header().sequences[0].text == "In the");
    CHECK(file->header().sequences[0].pieces.size() == 3);
    CHECK(file->header().sites[0].kind == "self");
    CHECK(file->header().mixers.size() == 4);
    const auto thumbnail = file->thumbnail("mean", 0, 0);
    REQUIRE(thumbnail.shape.size() == 3);
    CHECK(thumbnail.data[0] == 1.0);  // the first token sees itself alone
}

TEST_CASE("A NUL character in a text is kept as another one of its size", "[store]") {
    const test::TemporaryFolder folder;
    tests::SyntheticAnalysis a;
    store::AnalysisHeader header = tests::synthetic_header(a);
    header.sequences[0].text.replace(0, 1, std::string(1, '\0'));
    const std::string wanted = "\1" + header.sequences[0].text.substr(1);
    const auto path = folder / "a.headscope.h5";
    store::AnalysisWriter writer(path, header);
    writer.publish();
    CHECK(store::AnalysisFile::open(path)->header().sequences[0].text == wanted);
}

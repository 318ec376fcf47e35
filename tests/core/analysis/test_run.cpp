// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <cmath>
#include <numeric>

#include "core/analysis/request.h"
#include "core/base/error.h"
#include "core/store/analysis/analysis_file.h"
#include "tests/core/analysis/fake_model.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_recurrent.h"

using namespace headscope;
namespace fs = std::filesystem;

namespace {

constexpr double float_epsilon = 1.2e-7;

store::SequenceTokens sequence(std::int64_t length, std::int32_t start) {
    store::SequenceTokens tokens;
    for (std::int64_t i = 0; i < length; ++i) {
        tokens.ids.push_back(static_cast<std::int32_t>((start + 3 * i + i * i) % 40));
        tokens.pieces.push_back("t" + std::to_string(tokens.ids.back()));
        tokens.offsets.push_back({0, 0});
    }
    return tokens;
}

analysis::AnalysisRequest request_for(const std::vector<std::int64_t>& lengths) {
    analysis::AnalysisRequest request;
    for (const std::int64_t length : lengths) {
        request.sequences.push_back(sequence(length, static_cast<std::int32_t>(request.sequences.size())));
    }
    return request;
}

std::shared_ptr<store::AnalysisFile> analyse(tests::FakeModel& model, const analysis::AnalysisRequest& request,
                                             const fs::path& path) {
    NoProgress progress;
    const Cancellation cancellation;
    analysis::run(model, request, path, {}, progress, cancellation);
    return store::AnalysisFile::open(path);
}

std::size_t files_in(const fs::path& folder) {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

/// Every indicator, histogram and thumbnail of two files, sequence a of one and b of the other.
void require_same_numbers(const store::AnalysisFile& one, std::int64_t a, const store::AnalysisFile& other,
                          std::int64_t b) {
    const auto n = one.header().sites.size();
    for (const std::string& name : one.indicators()) {
        const auto x = one.indicator(name), y = other.indicator(name);
        const std::size_t cells = x.data.size() / one.header().sequences.size();
        INFO(name);
        for (std::size_t i = 0; i < cells; ++i) {
            const double u = x.data[static_cast<std::size_t>(a) * cells + i],
                         v = y.data[static_cast<std::size_t>(b) * cells + i];
            REQUIRE(std::isnan(u) == std::isnan(v));
            // The projections' GEMM may round otherwise for another batch size; 64 operations deep.
            if (!std::isnan(u)) REQUIRE(u == Approx(v).epsilon(64 * float_epsilon).margin(64 * float_epsilon));
        }
    }
    for (std::size_t site = 0; site < n; ++site) {
        const auto x = one.column_mass(a, static_cast<std::int64_t>(site));
        const auto y = other.column_mass(b, static_cast<std::int64_t>(site));
        const auto length = one.header().sequences[static_cast<std::size_t>(a)].ids.size();
        for (std::size_t h = 0; h < 4; ++h) {
            for (std::size_t j = 0; j < length; ++j) {
                const double u = x.data[h * static_cast<std::size_t>(x.shape[1]) + j];
                const double v = y.data[h * static_cast<std::size_t>(y.shape[1]) + j];
                REQUIRE(std::isnan(u) == std::isnan(v));  // sites without a matrix
                if (!std::isnan(u)) REQUIRE(u == Approx(v).margin(64 * float_epsilon));
            }
        }
    }
}

}  // namespace

TEST_CASE("Of a linear branch the file has its types, its matrix and what follows from it", "[analysis]") {
    tests::FakeModel::Options two;
    two.two_branches = true;
    tests::FakeModel model(two);
    const test::TemporaryFolder folder;
    auto request = request_for({11, 7, 11});
    std::vector<std::pair<std::int64_t, std::int64_t>> told;
    request.site_done = [&](std::int64_t s, std::int64_t site) { told.emplace_back(s, site); };
    const auto plain = analyse(model, request, folder / "plain.headscope.h5");
    CHECK(told.size() == 12);
    CHECK(std::count(told.begin(), told.end(), std::pair<std::int64_t, std::int64_t>{1, 3}) == 1);
    CHECK(plain->done_sites().size() == 12);
    CHECK(plain->header().type_chunk == 4);
    CHECK_FALSE(plain->has_implicit(0, 3));
    CHECK(std::isnan(plain->thumbnail("mean", 0, 3).data[0]));
    CHECK_FALSE(plain->branch_weights(0, 2).has_value());

    request.record.implicit = request.record.branches = true;
    const auto file = analyse(model, request, folder / "all.headscope.h5");
    require_same_numbers(*plain, 0, *file, 0);
    const auto entropy = file->indicator("entropy"), row_mean = file->indicator("entropy_row_mean"),
               concentration = file->indicator("concentration"), fraction = file->indicator("softmax_fraction");
    for (std::int64_t s = 0; s < 3; ++s) {
        const std::int64_t length = s == 1 ? 7 : 11, chunks = (length + 3) / 4, b = s == 2 ? 1 : 0;
        const auto types = file->token_types(s, 3).value();
        CHECK(file->implicit_deviation(s, 3) == tests::FakeModel::kDeviation);
        for (std::int64_t h = 0; h < 4; ++h) {
            const auto at = static_cast<std::size_t>((s * 4 + 3) * 4 + h);
            double softmax = 0;
            for (std::int64_t c = 0; c < 3; ++c) {
                const double type = types.data[static_cast<std::size_t>(h * 3 + c)];
                CHECK(type == (c < chunks ? tests::FakeModel::type_of(b, h, c) : -1));
                softmax += type == 0 ? 1 : 0;
            }
            CHECK(fraction.data[at] == softmax / static_cast<double>(chunks));
            CHECK(std::isnan(fraction.data[at - 4]));
            const auto matrix = file->implicit(s, 3, h, {0, length}, {0, length}).value();
            const auto expected = tests::implicit_statistics_of(matrix, 1, length);
            // Float64 sums over float32 coefficients: the same terms in another order.
            CHECK(entropy.data[at] == Approx(expected.entropy[0]).epsilon(1e-12));
            CHECK(row_mean.data[at] == Approx(expected.entropy_row_mean[0]).epsilon(1e-12));
            CHECK(concentration.data[at] == Approx(expected.concentration[0]).epsilon(1e-12));
            CHECK(std::isnan(file->indicator("sink").data[at]));
            CHECK(file->thumbnail("mean", s, 3).data[static_cast<std::size_t>((h * 11 + 6) * 11 + 2)] ==
                  static_cast<double>(matrix[static_cast<std::size_t>(6 * length + 2)]));
        }
        const auto weights = file->branch_weights(s, 2).value();
        CHECK(weights.data[static_cast<std::size_t>((11 + 4) * 2)] == Approx(0.8));
        CHECK(weights.data[static_cast<std::size_t>((11 + 4) * 2 + 1)] == Approx(0.2));
    }
    request.layers = {0};
    const auto first = analyse(model, request, folder / "first.headscope.h5");
    CHECK(first->done_sites().size() == 3);
    CHECK(first->token_types(0, 3)->data == std::vector<double>(12, -1));
}

TEST_CASE("Head embeddings are kept, once for all texts", "[analysis]") {
    tests::FakeModel::Options embedded;
    embedded.head_embeddings = true;
    tests::FakeModel model(embedded);
    const test::TemporaryFolder folder;
    const auto file = analyse(model, request_for({11, 7}), folder / "a.headscope.h5");
    CHECK(file->header().head_embedding_size == 8);
    const auto stored = file->parameters("head_embedding").value();
    REQUIRE(stored.shape == std::vector<std::int64_t>{3, 3, 4, 8});
    constexpr std::size_t kOfSite = 3 * 4 * 8;
    CHECK(std::isnan(stored.data[0]));
    for (std::size_t i = 0; i < kOfSite; ++i) CHECK(stored.data[2 * kOfSite + i] == static_cast<double>(i) / 8);
    tests::FakeModel plain({});
    CHECK_FALSE(analyse(plain, request_for({5}), folder / "b.headscope.h5")->parameters("head_embedding").has_value());
}

TEST_CASE("Biases by distance, slopes and offsets are kept, once for all texts", "[analysis]") {
    tests::FakeModel::Options distances;
    distances.distances = true;
    tests::FakeModel model(distances);
    const test::TemporaryFolder folder;
    auto request = request_for({11, 7});
    const auto file = analyse(model, request, folder / "a.headscope.h5");
    const auto& header = file->header();
    CHECK(header.bias_window == 3);
    CHECK(header.bias_first == 0);
    const auto bias = file->parameters("distance_bias").value(), slope = file->parameters("slope").value(),
               offset = file->parameters("offset").value();
    REQUIRE(bias.shape == std::vector<std::int64_t>{3, 4, 3});
    for (std::int64_t h = 0; h < 4; ++h) {
        for (std::int64_t d = 0; d < 3; ++d) {
            CHECK(bias.data[static_cast<std::size_t>(h * 3 + d)] == double{tests::FakeModel::bias_of(h, d)});
            CHECK(std::isnan(bias.data[static_cast<std::size_t>((4 + h) * 3 + d)]));
        }
        CHECK(slope.data[static_cast<std::size_t>(4 + h)] == double{tests::FakeModel::slope_of(h)});
        CHECK(std::isnan(slope.data[static_cast<std::size_t>(h)]));
        CHECK(offset.data[static_cast<std::size_t>(2 * 4 + h)] == double{tests::FakeModel::offset_of(h)});
        CHECK(std::isnan(offset.data[static_cast<std::size_t>(h)]));
    }
    // Heads with an offset release mass, and have zeros.
    CHECK(file->indicator("zero_fraction").data[2 * 4] > 0);
    request.layers = {1};
    const auto second = analyse(model, request, folder / "b.headscope.h5");
    CHECK(std::isnan(second->parameters("distance_bias")->data[0]));
    CHECK(second->parameters("slope")->data[4] == double{tests::FakeModel::slope_of(0)});
    tests::FakeModel plain({});
    CHECK_FALSE(analyse(plain, request_for({5}), folder / "c.headscope.h5")->parameters("slope").has_value());
}

TEST_CASE("What a model without recurrent layers cannot have recorded is refused", "[analysis]") {
    tests::FakeModel model({});
    const test::TemporaryFolder folder;
    for (const bool implicit : {true, false}) {
        auto request = request_for({5});
        (implicit ? request.record.implicit : request.record.branches) = true;
        try {
            analyse(model, request, folder / "a.headscope.h5");
            FAIL("was run");
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::usage);
            CHECK(error.where() == (implicit ? "--record implicit" : "--record branch-weights"));
        }
    }
    CHECK(files_in(folder.path()) == 0);
}

TEST_CASE("A file of hashed words has their bits", "[analysis]") {
    tests::FakeModel model({});
    const test::TemporaryFolder folder;
    auto request = request_for({3, 2});
    CHECK_FALSE(analyse(model, request, folder / "plain.headscope.h5")->header().hashed());
    request.sequences[0].hashes = {"", "b9386d96710ddd52bc49ff0033ead10f", ""};
    request.sequences[1].hashes = {"", ""};
    const auto file = analyse(model, request, folder / "hashed.headscope.h5");
    CHECK(file->header().hashed());
    for (std::size_t s = 0; s < 2; ++s) CHECK(file->header().sequences[s].hashes == request.sequences[s].hashes);
    request.sequences[1].hashes = {""};
    CHECK_THROWS_AS(analyse(model, request, folder / "wrong.headscope.h5"), Error);
}

TEST_CASE("Of heads of classes a file has these classes' logits, and no loss", "[analysis]") {
    const test::TemporaryFolder folder;
    auto request = request_for({5, 3});
    request.record.logits = true;
    for (const bool causal : {true, false}) {
        tests::FakeModel::Options options;
        options.causal = causal;
        options.classes = 3;
        options.kind = model::HeadKind::token_classes;
        tests::FakeModel of_tokens(options);
        const auto tokens = analyse(of_tokens, request, folder / (causal ? "a.headscope.h5" : "b.headscope.h5"));
        const auto rows = tokens->logits(1, 0, 3);
        REQUIRE(rows.has_value());
        CHECK(rows->shape.back() == 3);
        CHECK(std::isnan(tokens->loss(1).data[0]));
        CHECK_FALSE(tokens->class_logits(0).has_value());

        options.kind = model::HeadKind::sequence_classes;
        tests::FakeModel of_text(options);
        const auto text = analyse(of_text, request, folder / (causal ? "c.headscope.h5" : "d.headscope.h5"));
        CHECK_FALSE(text->header().record.logits);
        REQUIRE(text->class_logits(1).has_value());
        // Those of the first token.
        REQUIRE(text->class_logits(1)->data.size() == 3);
        for (std::size_t n = 0; n < 3; ++n) CHECK(text->class_logits(1)->data[n] == rows->data[n]);
        CHECK(std::isnan(text->loss(1).data[0]));
    }
}

TEST_CASE("With labels an encoder's file has the loss of each, and none where there is none", "[analysis]") {
    const test::TemporaryFolder folder;
    tests::FakeModel::Options options;
    options.causal = false;
    options.classes = 3;
    options.kind = model::HeadKind::token_classes;
    tests::FakeModel model(options);
    auto request = request_for({5, 3, 5});
    request.record.logits = true;
    request.labels = {{0, -100, 2, 1, -100}, {-100, -100, -100}, {2, 2, 2, 2, 0}};
    const auto file = analyse(model, request, folder / "a.headscope.h5");
    for (std::size_t s = 0; s < 3; ++s) {
        const auto count = static_cast<std::int64_t>(request.labels[s].size());
        const auto rows = file->logits(static_cast<std::int64_t>(s), 0, count);
        const auto loss = file->loss(static_cast<std::int64_t>(s));
        REQUIRE(rows.has_value());
        for (std::size_t i = 0; i < request.labels[s].size(); ++i) {
            const std::int64_t label = request.labels[s][i];
            if (label == analysis::no_label) {
                CHECK(std::isnan(loss.data[i]));
                continue;
            }
            double sum = 0;
            for (std::size_t c = 0; c < 3; ++c) sum += std::exp(static_cast<double>(rows->data[3 * i + c]));
            const double logit = rows->data[3 * i + static_cast<std::size_t>(label)];
            CHECK(loss.data[i] == Approx(std::log(sum) - logit).epsilon(8 * float_epsilon).margin(8 * float_epsilon));
        }
    }
    request.record.logits = false;  // the loss needs no logits in the file
    const auto alone = analyse(model, request, folder / "b.headscope.h5");
    CHECK(alone->loss(0).data[2] == file->loss(0).data[2]);

    const auto refused = [&](tests::FakeModel& other, const std::string& word) {
        CHECK_THROWS_MATCHES(
            analyse(other, request, folder / "c.headscope.h5"), Error,
            Catch::Matchers::Predicate<Error>(
                [&](const Error& error) { return std::string(error.what()).find(word) != std::string::npos; }, word));
    };
    const auto good = request.labels;
    request.labels[1] = {0, 1};
    refused(model, "each of the 3 tokens of sequence 1");
    request.labels = good;
    request.labels[2][4] = 3;
    refused(model, "found 3 for token 4 of sequence 2");
    request.labels[2][4] = -1;
    refused(model, "0 to 2, or -100");
    request.labels = good;
    request.labels.pop_back();
    refused(model, "labels of 3 sequences");
    request.labels = good;
    options.kind = model::HeadKind::sequence_classes;
    tests::FakeModel of_text(options);
    refused(of_text, "an encoder with a head for tokens");
    options.kind = model::HeadKind::token_classes;
    options.causal = true;
    tests::FakeModel decoder(options);
    refused(decoder, "found a decoder");
}

TEST_CASE("A pair's file has its regions and their mean attention", "[analysis]") {
    tests::FakeModel model({});
    const test::TemporaryFolder folder;
    auto request = request_for({7, 7});
    request.sequences[0].types = {0, 0, 0, 0, 1, 1, 1};
    request.sequences[0].regions = {0, 1, 1, 0, 2, 2, 0};
    request.record.attention = true;
    const auto file = analyse(model, request, folder / "pair.headscope.h5");
    REQUIRE(file->header().pairs());
    CHECK(file->header().sequences[0].regions == request.sequences[0].regions);
    CHECK(file->header().sequences[0].types == request.sequences[0].types);
    CHECK(file->header().sequences[1].regions.empty());
    const auto& regions = request.sequences[0].regions;
    const std::vector<std::string> names{"special", "a", "b"};
    for (std::int64_t site = 0; site < std::ssize(file->header().sites); ++site) {
        if (!file->header().measured(file->header().sites[static_cast<std::size_t>(site)])) continue;
        for (std::int64_t head = 0; head < file->header().sites[static_cast<std::size_t>(site)].heads; ++head) {
            const auto rows = file->attention_rows(0, site, head, 0, 7).value();
            for (std::int32_t from = 0; from < 3; ++from) {
                for (std::int32_t to = 0; to < 3; ++to) {
                    double sum = 0, count = 0;
                    for (std::size_t i = 0; i < 7; ++i) {
                        if (regions[i] != from) continue;
                        ++count;
                        for (std::size_t j = 0; j < 7; ++j) sum += regions[j] == to ? rows.data[i * 7 + j] : 0;
                    }
                    const auto means = file->indicator(names[static_cast<std::size_t>(from)] + "_to_" +
                                                       names[static_cast<std::size_t>(to)]);
                    const std::int64_t heads = means.shape[2], at = site * heads + head;
                    CHECK(means.data[static_cast<std::size_t>(at)] == Approx(sum / count).margin(16 * float_epsilon));
                    CHECK(std::isnan(means.data[static_cast<std::size_t>(means.shape[1] * heads + at)]));
                }
            }
        }
    }
}

TEST_CASE("Sequences of equal length run together and come out as if alone", "[analysis]") {
    tests::FakeModel model({});
    const test::TemporaryFolder folder;
    auto request = request_for({9, 5, 9, 9, 5, 1});
    request.batch_tokens = 20;
    const auto all = analyse(model, request, folder / "all.headscope.h5");
    REQUIRE(model.batch_sizes == std::vector<std::int64_t>{2, 2, 1, 1});
    for (std::size_t s = 0; s < request.sequences.size(); ++s) {
        analysis::AnalysisRequest alone;
        alone.sequences = {request.sequences[s]};
        const auto one = analyse(model, alone, folder / "one.headscope.h5");
        require_same_numbers(*all, static_cast<std::int64_t>(s), *one, 0);
        const auto x = all->loss(static_cast<std::int64_t>(s)).data, y = one->loss(0).data;
        for (std::size_t i = 0; i < 9; ++i) {
            const bool exists = i + 1 < request.sequences[s].ids.size();
            REQUIRE(std::isnan(x[i]) == !exists);
            if (exists) REQUIRE(x[i] == Approx(y[i]).epsilon(256 * float_epsilon));
        }
    }
}

TEST_CASE("Maps, dense rows, states and logits agree with one another", "[analysis]") {
    const bool causal = GENERATE(true, false);
    tests::FakeModel model({.causal = causal});
    const test::TemporaryFolder folder;
    auto request = request_for({17, 33, 17});
    request.record = {true, true, true, true, false};
    const auto file = analyse(model, request, folder / "a.headscope.h5");
    const auto entropy = file->indicator("entropy"), sink = file->indicator("sink");
    const auto low = file->score_statistic("minimum"), high = file->score_statistic("maximum");
    for (std::int64_t s = 0; s < 3; ++s) {
        const auto length = static_cast<std::int64_t>(request.sequences[static_cast<std::size_t>(s)].ids.size());
        for (std::int64_t site = 0; site < 3; ++site) {
            const auto map = file->map(s, site);
            REQUIRE(map.has_value());
            const auto norms = file->state("q_norm", s, site);
            for (std::int64_t h = 0; h < 4; ++h) {
                const auto at = static_cast<std::size_t>((s * 3 + site) * 4 + h);
                // Scores and row constants are float32: a weight is off by that much, relative to itself.
                const double relative =
                    4 * float_epsilon * (1 + std::max(std::abs(low.data[at]), std::abs(high.data[at])));
                const auto rows = file->attention_rows(s, site, h, 0, length);
                REQUIRE(rows.has_value());
                std::vector<float> again(static_cast<std::size_t>(length * length));
                kernels::attention_weights(map->input(), map->row_constant, 0, h, 0, length, 0, length, again.data());
                double plain_entropy = 0, first = 0;
                for (std::int64_t i = 0; i < length; ++i) {
                    double sum = 0;
                    for (std::int64_t j = 0; j < length; ++j) {
                        const double weight = rows->data[static_cast<std::size_t>(i * length + j)];
                        REQUIRE(weight == Approx(again[static_cast<std::size_t>(i * length + j)]).epsilon(relative));
                        sum += weight;
                        if (weight > 0) plain_entropy -= weight * std::log(weight);
                    }
                    REQUIRE(sum == Approx(1).epsilon(4 * float_epsilon));  // whatever the scores are
                    first += rows->data[static_cast<std::size_t>(i * length)];
                    // The fake model's rows of q are what it announced: no rotary in between.
                    double square = 0;
                    for (std::int64_t c = 0; c < 8; ++c) {
                        const double x = map->query[static_cast<std::size_t>((h * length + i) * 8 + c)];
                        square += x * x;
                    }
                    REQUIRE(norms->data[static_cast<std::size_t>(h * 33 + i)] ==
                            Approx(std::sqrt(square)).epsilon(16 * float_epsilon));
                }
                // d(-w log w) = -(log w + 1) dw, summed over a row: at most relative * (entropy + 1).
                REQUIRE(entropy.data[at] ==
                        Approx(plain_entropy).margin(relative * (plain_entropy + static_cast<double>(length))));
                REQUIRE(sink.data[at] == Approx(first / static_cast<double>(length)).epsilon(relative));
            }
        }
        const auto logits = file->logits(s, 0, 33)->data;
        const auto loss = file->loss(s).data;
        for (std::int64_t i = 0; i < 33; ++i) {
            const bool exists = causal && i + 1 < length;
            REQUIRE(std::isnan(logits[static_cast<std::size_t>(i * 40)]) == (i >= length));
            REQUIRE(std::isnan(loss[static_cast<std::size_t>(i)]) == !exists);
            if (!exists) continue;
            double sum = 0;
            for (std::size_t v = 0; v < 40; ++v) sum += std::exp(logits[static_cast<std::size_t>(i * 40) + v]);
            const auto next = static_cast<std::size_t>(
                request.sequences[static_cast<std::size_t>(s)].ids[static_cast<std::size_t>(i + 1)]);
            const double expected = std::log(sum) - logits[static_cast<std::size_t>(i * 40) + next];
            REQUIRE(loss[static_cast<std::size_t>(i)] ==
                    Approx(expected).epsilon(64 * float_epsilon).margin(64 * float_epsilon * 40));
        }
        for (std::int64_t boundary = 0; boundary <= 3; ++boundary) {
            REQUIRE(
                std::isfinite(file->state("hidden_variance", s, boundary)->data[static_cast<std::size_t>(length - 1)]));
        }
    }
}

TEST_CASE("Only the layers asked for are measured, and skipped ones are left out", "[analysis]") {
    tests::FakeModel model({});
    const test::TemporaryFolder folder;
    auto request = request_for({12});
    request.record.maps = request.record.states = true;
    request.layers = {0, 1};
    request.skip_layers = {1};
    const auto file = analyse(model, request, folder / "a.headscope.h5");
    const auto sink = file->indicator("sink");
    for (std::int64_t site = 0; site < 3; ++site) {
        REQUIRE(file->site_done(0, site) == (site == 0));
        REQUIRE(std::isnan(sink.data[static_cast<std::size_t>(site * 4)]) == (site != 0));
        REQUIRE(file->map(0, site).has_value() == (site == 0));
        REQUIRE(std::isnan(file->state("v_norm", 0, site)->data[0]) == (site != 0));
    }
    REQUIRE(std::isfinite(file->loss(0).data[0]));
    request.layers = {3};
    CHECK_THROWS_AS(analyse(model, request, folder / "b.headscope.h5"), Error);
    request.layers = {1};
    CHECK_THROWS_AS(analyse(model, request, folder / "b.headscope.h5"), Error);  // asked for and left out
    REQUIRE(files_in(folder.path()) == 1);
}

TEST_CASE("Experts are kept in order of weight, of measured layers that have some", "[analysis]") {
    tests::FakeModel model({.layers = 4, .experts = 7});
    const test::TemporaryFolder folder;
    auto request = request_for({9, 5, 9});
    request.record.experts = true;
    request.layers = {0, 1, 2};
    const auto file = analyse(model, request, folder / "a.headscope.h5");
    CHECK(file->header().experts == 7);
    CHECK(file->header().experts_per_token == 2);
    for (std::int64_t s = 0; s < 3; ++s) {
        const auto& ids = request.sequences[static_cast<std::size_t>(s)].ids;
        for (std::int64_t layer = 0; layer < 4; ++layer) {
            const auto experts = file->experts(s, layer);
            REQUIRE(experts->index.data.size() == 18);
            for (std::size_t i = 0; i < 9; ++i) {
                const bool there = (layer == 1 || layer == 2) && i < ids.size();
                const double share = there ? ids[i] / 100.0 : 0;
                CHECK(experts->index.data[2 * i] == (there ? (ids[i] + layer) % 7 : -1));
                CHECK(experts->index.data[2 * i + 1] == (there ? ids[i] % 7 : -1));
                REQUIRE(std::isnan(experts->weight.data[2 * i]) == !there);
                if (there) CHECK(experts->weight.data[2 * i] == Approx(1 - share).epsilon(4 * float_epsilon));
                if (there) CHECK(experts->weight.data[2 * i + 1] == Approx(share).epsilon(4 * float_epsilon));
            }
        }
    }
}

TEST_CASE("Without an output projection that reads heads there are no norms", "[analysis][norms]") {
    tests::FakeModel model({});
    const test::TemporaryFolder folder;
    auto request = request_for({12});
    request.record.maps = request.record.norms = true;
    const auto file = analyse(model, request, folder / "a.headscope.h5");
    REQUIRE(file->header().record.norms);
    const auto products = file->value_products(0, 0);
    REQUIRE(products);
    REQUIRE((products->shape == std::vector<std::int64_t>{12, 4, 4}));
    for (const double value : products->data) REQUIRE(std::isnan(value));
}

TEST_CASE("What the first layer reads is kept where layer 0 is left out", "[analysis]") {
    tests::FakeModel model({});
    const test::TemporaryFolder folder;
    auto request = request_for({12});
    request.record.states = true;
    const auto whole = analyse(model, request, folder / "a.headscope.h5");
    request.skip_layers = {0};
    const auto skipped = analyse(model, request, folder / "b.headscope.h5");
    CHECK(skipped->state("hidden_norm", 0, 0)->data == whole->state("hidden_norm", 0, 0)->data);
    CHECK(std::isnan(skipped->state("hidden_norm", 0, 1)->data[0]));
    CHECK(std::isfinite(skipped->state("hidden_norm", 0, 2)->data[0]));
}

TEST_CASE("Histograms count every allowed pair, of sampled rows where the text is long", "[analysis]") {
    tests::FakeModel model({.layers = 1, .positions = 0});
    const test::TemporaryFolder folder;
    const auto counted = [&](std::int64_t length, bool all_rows) {
        auto request = request_for({length});
        request.all_rows = all_rows;
        const auto file = analyse(model, request, folder / "a.headscope.h5");
        const auto counts = file->histogram(0, 0).data;
        return std::pair(std::accumulate(counts.begin(), counts.begin() + kernels::kHistogramBins, 0.0),
                         file->histogram_row_step());
    };
    REQUIRE(counted(1024, false) == std::pair(1024.0 * 1025 / 2, std::int64_t{1}));
    REQUIRE(counted(1025, true) == std::pair(1025.0 * 1026 / 2, std::int64_t{1}));
    double sampled = 0;
    for (int i = 7; i < 1025; i += 8) sampled += i + 1;
    REQUIRE(counted(1025, false) == std::pair(sampled, std::int64_t{8}));
}

TEST_CASE("A cancelled run ends in Stopped and leaves nothing", "[analysis]") {
    tests::FakeModel model({});
    const test::TemporaryFolder folder;
    Cancellation cancellation;
    NoProgress progress;
    model.before_layer = [&](std::int64_t layer) {
        REQUIRE(files_in(folder.path()) == 1);  // the partial file
        if (layer == 2) cancellation.request();
    };
    CHECK_THROWS_AS(analysis::run(model, request_for({12}), folder / "a.headscope.h5", {}, progress, cancellation),
                    Stopped);
    REQUIRE(files_in(folder.path()) == 0);
}

TEST_CASE("A run that fails is one Error and leaves nothing", "[analysis]") {
    tests::FakeModel model({});
    const test::TemporaryFolder folder;
    model.before_layer = [](std::int64_t layer) {
        if (layer == 1) throw std::bad_alloc();
    };
    try {
        analyse(model, request_for({12}), folder / "a.headscope.h5");
        FAIL("went through");
    } catch (const Error& error) {
        REQUIRE(error.code() == ErrorCode::memory);
    }
    REQUIRE(files_in(folder.path()) == 0);
}

TEST_CASE("What cannot be analysed is refused before a file appears", "[analysis]") {
    tests::FakeModel model({.head = false});
    bool ran = false;
    model.before_layer = [&](std::int64_t) { ran = true; };
    const test::TemporaryFolder folder;
    const auto refused = [&](const analysis::AnalysisRequest& request) {
        CHECK_THROWS_AS(analyse(model, request, folder / "a.headscope.h5"), Error);
    };
    refused(request_for({}));
    refused(request_for({5, 0}));
    refused(request_for({5, 65}));  // beyond the positions
    auto request = request_for({5});
    request.sequences[0].ids[3] = 40;
    refused(request);
    request = request_for({5});
    request.record.logits = true;
    refused(request);
    request = request_for({5});
    request.record.experts = true;
    refused(request);
    CHECK_FALSE(ran);
    REQUIRE(files_in(folder.path()) == 0);
}

TEST_CASE("Progress grows evenly and ends at its total", "[analysis]") {
    struct Recorder final : Progress {
        void advance(double done, double total, const std::string& what) override {
            REQUIRE(done >= last);
            CHECK_FALSE(what.empty());
            last = done;
            REQUIRE((of == 0 || of == total));
            of = total;
            ++calls;
        }
        double last = 0, of = 0;
        int calls = 0;
    } recorder;
    tests::FakeModel model({});
    const test::TemporaryFolder folder;
    const Cancellation cancellation;
    analysis::run(model, request_for({12, 30, 12}), folder / "a.headscope.h5", {}, recorder, cancellation);
    REQUIRE(recorder.calls == 8);  // two batches of three layers and a loss
    REQUIRE(recorder.last == Approx(recorder.of));
}

TEST_CASE("NaN is reported by the first place of each kind, and stored", "[analysis][problems]") {
    const test::TemporaryFolder folder;
    tests::FakeModel good({}), bad({});
    REQUIRE(analyse(good, request_for({9, 9}), folder / "good.h5")->problems().empty());
    bad.loaded().not_finite = {{"layers.1.value", 1, 1024}, {"layers.2.value", 3, 1024}};
    bad.spoil(1);
    const auto file = analyse(bad, request_for({9, 9}), folder / "bad.h5");
    const std::vector<std::string> expected{
        "weights: 1 of 1 024 numbers of layers.1.value are NaN or infinite, and some of 1 tensor more",
        "activations: NaN or infinite, first in \"hidden\" of layer 1, token 0 of sequence 0; so are 1 more",
        "scores: NaN or infinite, first in layer 2, head 0 of sequence 0; so are 7 more",
        "loss: NaN or infinite, first in token 0 of sequence 0; so are 1 more"};
    REQUIRE(file->problems() == expected);
    file->check();
}

// SPDX-License-Identifier: GPL-3.0-or-later
// Analyses of an encoder-decoder: two streams of tokens, three kinds of sites, and the targets that users give.
#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>

#include "core/analysis/request.h"
#include "core/analysis/summary.h"
#include "core/analysis/targets.h"
#include "core/base/error.h"
#include "core/store/analysis/analysis_file.h"
#include "core/tokenizer/tokenizer.h"
#include "kernels/attention.h"
#include "tests/core/analysis/analysis_requests.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using test::IsError;
using tests::analyse;

namespace {

constexpr double kFloatEpsilon = 1.2e-7;

test::TinyCheckpoint tiny_t5() {
    std::ifstream file(test::golden_model_file("t5"));
    const auto json = nlohmann::json::parse(file);
    test::TinyCheckpoint tiny;
    tiny.config = json.at("config");
    tiny.tensors = json.at("tensors").get<std::map<std::string, std::vector<std::int64_t>>>();
    return tiny;
}

store::SequenceTokens tokens(std::int64_t length, std::int32_t first) {
    store::SequenceTokens made;
    for (std::int64_t i = 0; i < length; ++i) {
        made.ids.push_back(static_cast<std::int32_t>((first + 3 * i + i * i) % 41));
        made.pieces.push_back("t" + std::to_string(made.ids.back()));
        made.offsets.push_back({0, 0});
    }
    return made;
}

analysis::AnalysisRequest request_for(const std::vector<std::pair<std::int64_t, std::int64_t>>& lengths) {
    analysis::AnalysisRequest request;
    for (const auto& [source, target] : lengths) {
        const auto number = static_cast<std::int32_t>(request.sequences.size());
        request.sequences.push_back(tokens(source, number));
        request.targets.push_back(tokens(target, number + 5));
    }
    return request;
}

// Sites of tiny_t5(): two of the encoder, then the decoder's own and the cross one.
constexpr std::int64_t kOwn = 2, kCross = 3;

}  // namespace

TEST_CASE("An encoder-decoder's analysis holds both streams and all three kinds of sites", "[analysis]") {
    const auto model = tiny_t5().build();
    const test::TemporaryFolder folder;
    auto request = request_for({{9, 4}, {6, 6}, {9, 4}, {1, 12}});
    request.record = {true, true, true, true, false};
    const auto file = analyse(*model, request, folder / "a.headscope.h5");
    const store::AnalysisHeader& header = file->header();
    REQUIRE(header.sites.size() == 4);
    REQUIRE(header.mixers.size() == 3);
    REQUIRE(header.streams.at("target").size() == 4);
    CHECK(header.longest() == 12);
    CHECK(header.hidden_boundaries == 4);
    CHECK(&header.output_sequences() == &header.streams.at("target"));
    CHECK(header.sites[kCross].kind == "cross");

    const auto focus = file->indicator("local_focus"), duplicate = file->indicator("duplicate");
    const auto sink = file->indicator("sink");
    for (std::int64_t s = 0; s < 4; ++s) {
        const auto at = static_cast<std::size_t>(s);
        CHECK(header.sequences[at].ids == request.sequences[at].ids);
        CHECK(header.streams.at("target")[at].ids == request.targets[at].ids);
        const auto source = std::ssize(request.sequences[at].ids), target = std::ssize(request.targets[at].ids);
        for (std::int64_t site = 0; site < 4; ++site) {
            const std::int64_t queries = site < kOwn ? source : target, keys = site == kOwn ? target : source;
            CAPTURE(s, site);
            const auto map = file->map(s, site);
            REQUIRE(map.has_value());
            CHECK(map->queries == queries);
            CHECK(map->keys == keys);
            const auto mass = file->column_mass(s, site);
            const auto small = file->thumbnail("mean", s, site);
            const std::int64_t side = small.shape[1];
            for (std::int64_t h = 0; h < 3; ++h) {
                const auto head = static_cast<std::size_t>((s * 4 + site) * 3 + h);
                std::vector<float> weights(static_cast<std::size_t>(queries * keys));
                kernels::attention_weights(map->input(), map->row_constant, 0, h, 0, queries, 0, keys, weights.data());
                double first = 0;
                for (std::int64_t i = 0; i < queries; ++i) {
                    const auto row = file->attention_rows(s, site, h, i, 1);
                    REQUIRE(row.has_value());
                    REQUIRE(std::ssize(row->data) == keys);
                    double sum = 0;
                    for (std::int64_t j = 0; j < keys; ++j) {
                        const double weight = row->data[static_cast<std::size_t>(j)];
                        sum += weight;
                        CHECK(weight == Approx(weights[static_cast<std::size_t>(i * keys + j)]).margin(1e-6));
                    }
                    CHECK(sum == Approx(1).epsilon(64 * kFloatEpsilon));
                    first += row->data[0];
                }
                CHECK(sink.data[head] == Approx(first / static_cast<double>(queries)).epsilon(64 * kFloatEpsilon));
                CHECK(std::isnan(duplicate.data[head]) == (site == kCross));
                // Also where there are as many queries as keys.
                CHECK(std::isnan(focus.data[head * 4]) == (site == kCross));
                double all = 0;
                for (std::int64_t j = 0; j < mass.shape[1]; ++j) {
                    const double value = mass.data[static_cast<std::size_t>(h * mass.shape[1] + j)];
                    CHECK(std::isnan(value) == (j >= keys));
                    if (j < keys) all += value;
                }
                if (site == kCross) CHECK(all == Approx(1).epsilon(64 * kFloatEpsilon));
                for (std::int64_t cell = 0; cell < side * side; ++cell) {
                    const bool inside = cell / side < queries && cell % side < keys;
                    CHECK(std::isnan(small.data[static_cast<std::size_t>(h * side * side + cell)]) == !inside);
                }
            }
            for (const char* name : {"q_norm", "k_norm"}) {
                const auto norms = file->state(name, s, site);
                const std::int64_t real = name[0] == 'q' ? queries : keys;
                for (std::int64_t i = 0; i < norms->shape[1]; ++i)
                    CHECK(std::isnan(norms->data[static_cast<std::size_t>(i)]) == (i >= real));
            }
        }
        // Boundaries: three of the encoder, over the source; one behind the decoder's layer, over the target.
        for (std::int64_t boundary = 0; boundary < 4; ++boundary) {
            const auto norms = file->state("hidden_norm", s, boundary);
            const std::int64_t real = boundary < 3 ? source : target;
            for (std::int64_t i = 0; i < norms->shape[0]; ++i)
                CHECK(std::isnan(norms->data[static_cast<std::size_t>(i)]) == (i >= real));
        }
        const auto loss = file->loss(s).data;
        const auto logits = file->logits(s, 0, target);
        for (std::int64_t i = 0; i < 12; ++i) {
            CHECK(std::isnan(loss[static_cast<std::size_t>(i)]) == (i + 1 >= target));
            if (i + 1 >= target) continue;
            double total = 0;
            for (std::int64_t v = 0; v < 41; ++v) total += std::exp(logits->data[static_cast<std::size_t>(i * 41 + v)]);
            const auto next = static_cast<std::int64_t>(request.targets[at].ids[static_cast<std::size_t>(i) + 1]);
            const double expected = std::log(total) - logits->data[static_cast<std::size_t>(i * 41 + next)];
            CHECK(loss[static_cast<std::size_t>(i)] == Approx(expected).epsilon(1e-5));
        }
        const auto beyond = file->logits(s, target, 12 - target);
        for (const double value : beyond->data) CHECK(std::isnan(value));
    }
    const analysis::Summary summary = analysis::summarise(*file);
    CHECK(summary.rows[0].site == "encoder 0");
    CHECK(summary.rows[kOwn].site == "decoder 2 self");
    CHECK(summary.rows[kCross].site == "decoder 2 cross");
}

TEST_CASE("Layers of both towers are numbered through when they are chosen", "[analysis]") {
    const auto model = tiny_t5().build();
    const test::TemporaryFolder folder;
    auto request = request_for({{5, 3}});
    request.record.states = true;
    request.layers = {1, 2};
    request.skip_layers = {1};
    const auto file = analyse(*model, request, folder / "a.headscope.h5");
    const auto entropy = file->indicator("entropy");
    for (std::size_t site = 0; site < 4; ++site) CHECK(std::isnan(entropy.data[site * 3]) == (site < 2));
    request.layers = {3};
    CHECK_THROWS_MATCHES(analyse(*model, request, folder / "b.headscope.h5"), Error,
                         IsError(ErrorCode::usage, "--layers"));
    request.layers = {};
    request.targets.clear();
    CHECK_THROWS_MATCHES(analyse(*model, request, folder / "b.headscope.h5"), Error,
                         IsError(ErrorCode::usage, "expected 1 targets"));
    request = request_for({{5, 3}});
    request.targets[0].ids[2] = 41;
    CHECK_THROWS_MATCHES(analyse(*model, request, folder / "b.headscope.h5"), Error,
                         IsError(ErrorCode::limit, "target sequence 0, token 2"));
    CHECK_FALSE(std::filesystem::exists(folder / "b.headscope.h5"));
}

TEST_CASE("Targets begin with the start token; one serves all sequences, and none is the start token alone",
          "[analysis][input]") {
    const auto tokenizer = tokenizer::Tokenizer::bytes();
    analysis::TargetOptions options;
    options.start = 7;
    options.vocabulary = 300;
    auto targets = analysis::read_targets(options, 2, nullptr);
    REQUIRE(targets.size() == 2);
    CHECK(targets[1].ids == std::vector<std::int32_t>{7});
    CHECK(targets[1].pieces.size() == 1);

    options.texts = {"abc"};
    targets = analysis::read_targets(options, 3, tokenizer.get());
    REQUIRE(targets.size() == 3);
    CHECK(targets[2].ids == std::vector<std::int32_t>{7, 'a', 'b', 'c'});
    CHECK(targets[2].text == "abc");
    CHECK(targets[2].offsets[1] == std::array<std::int64_t, 2>{0, 1});
    options.repeat_token = true;
    CHECK(analysis::read_targets(options, 1, tokenizer.get())[0].ids == std::vector<std::int32_t>{7, 'a', 'a', 'a'});
    options.repeat_token = false;
    options.length = 3;
    CHECK(analysis::read_targets(options, 1, tokenizer.get())[0].ids == std::vector<std::int32_t>{7, 'a', 'b'});

    const test::TemporaryFolder folder;
    options.token_files = {test::write_file(folder / "ids.json", "[[1, 2], [299]]")};
    options.length = 0;
    targets = analysis::read_targets(options, 3, tokenizer.get());
    CHECK(targets[1].ids == std::vector<std::int32_t>{7, 1, 2});
    CHECK(targets[2].ids == std::vector<std::int32_t>{7, 299});
    CHECK_THROWS_MATCHES(analysis::read_targets(options, 2, tokenizer.get()), Error,
                         IsError(ErrorCode::usage, "one for each of 2 sequences"));
    options.vocabulary = 299;
    CHECK_THROWS_AS(analysis::read_targets(options, 3, tokenizer.get()), Error);
    options.token_files.clear();
    CHECK_THROWS_MATCHES(analysis::read_targets(options, 1, nullptr), Error, IsError(ErrorCode::usage, "--target"));
    options.texts = {""};
    CHECK_THROWS_MATCHES(analysis::read_targets(options, 1, tokenizer.get()), Error,
                         IsError(ErrorCode::usage, "--target"));
    options.texts = {"\xff"};
    CHECK_THROWS_MATCHES(analysis::read_targets(options, 1, tokenizer.get()), Error,
                         IsError(ErrorCode::format, "UTF-8"));
}

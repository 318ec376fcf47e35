// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/evaluation/scripted_model.h"

#include <cmath>

#include "core/evaluation/position_score.h"
#include "core/evaluation/tasks.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;

namespace {

constexpr double kSame = 0.6, kOther = 0.4 / 255;

/// Bytes: each is followed by the same one with probability kSame, the others share the rest.
test::ScriptedModel repeating() {
    at::Tensor logits = at::zeros({256, 256}).add_(std::log(kOther));
    for (int i = 0; i < 256; ++i) logits[i][i] = std::log(kSame);
    return test::ScriptedModel(logits);
}

std::unique_ptr<evaluation::Documents> documents_of(const test::TemporaryFolder& folder,
                                                    const std::vector<std::string>& contents) {
    std::vector<data::SourceFile> sources;
    for (std::size_t i = 0; i < contents.size(); ++i)
        sources.push_back(
            {test::write_file(folder / (std::to_string(i) + ".txt"), contents[i]), data::SourceKind::text});
    return evaluation::file_documents(sources, tokenizer::Tokenizer::bytes(), "texts");
}

/// One text of those files.
std::vector<evaluation::NamedText> texts(const test::TemporaryFolder& folder,
                                         const std::vector<std::string>& contents) {
    std::vector<evaluation::NamedText> all;
    all.push_back({"words", "digest", documents_of(folder, contents)});
    return all;
}

evaluation::Request request(std::int64_t length, double bucket) {
    evaluation::Request request;
    request.tasks = {"position_perplexity"};
    request.lengths = {length};
    request.generator_options["position_perplexity"]["bucket"] = bucket;
    return request;
}

}  // namespace

TEST_CASE("Perplexity by position: blocks of joined text, each from its first token", "[evaluation]") {
    const test::TemporaryFolder folder;
    // Blocks aabb and abbb; the last two bytes are no block.
    const auto documents = documents_of(folder, {"aabba", "bbbxx"});
    const double same = -std::log(kSame), other = -std::log(kOther);
    for (const std::int64_t batch : {1, 1000}) {
        auto model = repeating();
        evaluation::PositionOptions options;
        options.length = 4;
        options.bucket = 2;
        options.score.batch_tokens = batch;
        const auto buckets = evaluation::score_positions(model, *documents, options);
        CHECK(model.longest == 3);  // the last token of a block is predicted, not read
        CHECK(model.passes == (batch == 1 ? 2 : 1));
        REQUIRE(buckets.size() == 2);
        CHECK(buckets[0].last == 2);
        CHECK(buckets[0].tokens == 2);
        CHECK(buckets[0].loss == Approx((same + other) / 2).epsilon(1e-6));
        CHECK(buckets[0].error == Approx((other - same) / 2).epsilon(1e-6));
        CHECK(buckets[1].last == 4);
        CHECK(buckets[1].tokens == 4);
        CHECK(buckets[1].loss == Approx((3 * same + other) / 4).epsilon(1e-6));
        CHECK(buckets[1].error == Approx((other - same) / 4).epsilon(1e-6));
    }
}

TEST_CASE("The last bucket ends with the block, and one of the first position alone is none", "[evaluation]") {
    const test::TemporaryFolder folder;
    const auto documents = documents_of(folder, {"aaaaaaa"});
    auto model = repeating();
    evaluation::PositionOptions options;
    options.length = 7;
    options.bucket = 3;
    std::vector<std::int64_t> lasts, tokens;
    for (const auto& bucket : evaluation::score_positions(model, *documents, options)) {
        lasts.push_back(bucket.last);
        tokens.push_back(bucket.tokens);
        CHECK(std::isnan(bucket.error));
    }
    CHECK(lasts == std::vector<std::int64_t>{3, 6, 7});
    CHECK(tokens == std::vector<std::int64_t>{2, 3, 1});
    options.bucket = 1;
    CHECK(evaluation::score_positions(model, *documents, options).front().last == 2);
    options.length = options.bucket = 8;
    CHECK_THROWS_MATCHES(evaluation::score_positions(model, *documents, options), Error,
                         test::IsError(ErrorCode::usage, "found 7"));
}

TEST_CASE("Rows of perplexity by position are those of its buckets", "[evaluation]") {
    const test::TemporaryFolder folder;
    const auto documents = texts(folder, {"aabbabbb"});
    auto model = repeating();
    NoProgress progress;
    const double same = -std::log(kSame), other = -std::log(kOther);
    const auto rows = evaluation::run_tasks(model, request(4, 2), documents, 1, progress);
    REQUIRE(rows.size() == 2);
    CHECK(rows[1].model == 1);
    CHECK(rows[1].task == "position_perplexity");
    CHECK(rows[1].metric == "token_perplexity");
    CHECK(rows[1].length == 4);
    CHECK(rows[1].count == 4);
    CHECK(rows[1].text == "words");
    CHECK(rows[1].data_sha256 == "digest");
    const double perplexity = std::exp((3 * same + other) / 4);
    CHECK(rows[1].value == Approx(perplexity).epsilon(1e-6));
    CHECK(rows[1].error == Approx(perplexity * (other - same) / 4).epsilon(1e-6));
    // Default: a 32nd of the block.
    auto usual = request(4, 1);
    usual.generator_options.clear();
    CHECK(evaluation::run_tasks(model, usual, documents, 1, progress).size() == 3);
}

TEST_CASE("Perplexity by position refuses lengths and buckets that cannot be", "[evaluation]") {
    const test::TemporaryFolder folder;
    const auto documents = texts(folder, {"aabbabbb"});
    auto model = repeating();
    NoProgress progress;
    const auto refused = [&](const evaluation::Request& wrong, const std::string& part) {
        CHECK_THROWS_MATCHES(evaluation::run_tasks(model, wrong, documents, 0, progress), Error,
                             test::IsError(ErrorCode::usage, part));
    };
    auto two = request(4, 2);
    two.lengths.push_back(8);
    refused(two, "expected one --length");
    refused(request(4, 5), "position_perplexity.bucket");
    refused(request(4, 1.5), "whole number");
    refused(request(1, 1), "at least 2 tokens");
    auto unknown = request(4, 2);
    unknown.generator_options["position_perplexity"]["buckets"] = 2;
    refused(unknown, "position_perplexity.buckets");
}

// SPDX-License-Identifier: GPL-3.0-or-later
// Log-likelihoods of requests that are read together, against those of each request in a pass of its own.
#include "tests/core/evaluation/scripted_model.h"

#include <cmath>
#include <numeric>

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>

#include "core/evaluation/harness/harness_passes.h"
#include "tests/core/base/bytes_read.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using evaluation::HarnessRequest;
using evaluation::RequestScore;
using evaluation::ScoreOptions;
using Ids = std::vector<std::int64_t>;

namespace {

/// The bound of the specification.
double tolerance(double sum) {
    return 1e-4 + 1e-5 * std::abs(sum);
}

Ids some_ids(std::int64_t kind, std::int64_t count, std::int64_t vocabulary) {
    Ids ids;
    for (std::int64_t i = 0; i < count; ++i) ids.push_back((kind * 11 + i * 7 + i * i * 3 + 5) % vocabulary);
    return ids;
}

/// Items of several options behind long contexts, equal options, options that differ in their last token only or are
/// the beginning of others, and texts of all lengths.
std::vector<HarnessRequest> some_requests(std::int64_t vocabulary) {
    std::vector<HarnessRequest> requests;
    const auto add = [&](Ids before, const Ids& after) {
        before.insert(before.end(), after.begin(), after.end());
        requests.push_back({std::move(before), {}, std::ssize(after)});
    };
    std::int64_t kind = 0;
    for (const std::int64_t context : {41, 44, 50, 40}) {
        const Ids before = some_ids(++kind, context, vocabulary);
        for (const std::int64_t option : {1, 5, 3, 8}) add(before, some_ids(++kind, option, vocabulary));
        add(before, some_ids(kind, 8, vocabulary));
        add(before, some_ids(kind, 4, vocabulary));
    }
    for (std::int64_t length = 1; length < 12; length += 3) {
        const Ids before = some_ids(++kind, length, vocabulary);
        add(before, {3});
        add(before, {4});
        add(before, some_ids(++kind, 12 - length, vocabulary));
    }
    return requests;
}

/// The same for an encoder-decoder, whose sources are up to 40 tokens.
std::vector<HarnessRequest> some_targets(std::int64_t vocabulary, std::int64_t longest) {
    std::vector<HarnessRequest> requests;
    std::int64_t kind = 0;
    for (const std::int64_t source : {longest, longest, longest - 3, std::int64_t{2}}) {
        const Ids read = some_ids(++kind, source, vocabulary);
        for (const std::int64_t option : {1, 4, 2, 6})
            requests.push_back({some_ids(++kind, option, vocabulary), read, option});
        requests.push_back(requests.back());
    }
    return requests;
}

/// One pass for one request.
RequestScore alone(model::Model& model, const HarnessRequest& request) {
    model::Batch batch;
    Ids read(request.ids.begin(), request.ids.end() - 1);
    if (request.source.empty()) {
        batch.ids = at::tensor(read, at::kLong).unsqueeze(0);
    } else {
        read.insert(read.begin(), model.config().decoder_start);
        batch.ids = at::tensor(request.source, at::kLong).unsqueeze(0);
        batch.target = at::tensor(read, at::kLong).unsqueeze(0);
    }
    model::ForwardOptions forward;
    forward.beyond_positions = true;
    const at::Tensor said = at::log_softmax(model.logits(model.forward(batch, forward)[0], nullptr), 1);
    RequestScore score;
    for (std::int64_t k = request.scored; k > 0; --k) {
        const std::int64_t target = *(request.ids.end() - k);
        const at::Tensor row = said[said.size(0) - k];
        score.each.push_back(row[target].item<float>());
        score.greedy = score.greedy && row.argmax().item<std::int64_t>() == target;
        score.loglikelihood += static_cast<double>(score.each.back());
    }
    return score;
}

void check_scores(model::Model& model, const std::vector<HarnessRequest>& requests) {
    std::vector<RequestScore> wanted;
    for (const HarnessRequest& request : requests) wanted.push_back(alone(model, request));
    for (const std::int64_t batch : {1, 60, 150, 700, 4096}) {
        INFO("batches of " << batch);
        ScoreOptions options;
        options.batch_tokens = batch;
        options.beyond_positions = true;
        std::int64_t done = 0;
        const auto scores = evaluation::score_requests(model, requests, options, [&](std::int64_t now) {
            CHECK(now > done);
            done = now;
        });
        CHECK(done == std::ssize(requests));
        REQUIRE(scores.size() == requests.size());
        for (std::size_t i = 0; i < scores.size(); ++i) {
            INFO("request " << i);
            CHECK(std::abs(scores[i].loglikelihood - wanted[i].loglikelihood) <= tolerance(wanted[i].loglikelihood));
            CHECK(scores[i].greedy == wanted[i].greedy);
            REQUIRE(scores[i].each.size() == wanted[i].each.size());
            for (std::size_t k = 0; k < scores[i].each.size(); ++k)
                CHECK(std::abs(scores[i].each[k] - wanted[i].each[k]) <=
                      tolerance(static_cast<double>(wanted[i].each[k])));
        }
    }
}

/// Nine tokens: behind token i comes token i + 1, surely.
at::Tensor counting() {
    at::Tensor logits = at::zeros({9, 9});
    for (int i = 0; i < 8; ++i) logits[i][i + 1] = 5.0;
    return logits;
}

}  // namespace

TEST_CASE("Requests have the scores of a pass of their own", "[evaluation]") {
    // A decoder, layers with a state, both, convolutions and scans, NAtS-L, and mixers that are read at equal lengths.
    for (const char* name : {"llama", "native-gated_deltanet", "native-mamba2", "native-non_approximate", "native-kda",
                             "native-rnd_emb_qk", "native-static_emb_qk", "hybrid-jamba", "hybrid-qwen3-next",
                             "hybrid-falcon-h1", "native-natsl", "native-approximate", "llama-rope-dynamic"}) {
        INFO(name);
        test::TinyCheckpoint checkpoint = test::golden_checkpoint(name);
        if (const auto guide = checkpoint.tensors.find("model.guide"); guide != checkpoint.tensors.end()) {
            guide->second.at(1) = 64;  // a row a position
            checkpoint.config["max_position_embeddings"] = 64;
        }
        const auto model = checkpoint.build();
        check_scores(*model, some_requests(model->config().vocabulary));
    }
}

TEST_CASE("Targets of an encoder-decoder have the scores of a pass of their own", "[evaluation]") {
    for (const char* name : {"t5", "bart"}) {
        INFO(name);
        const auto model = test::golden_checkpoint(name).build();
        const std::int64_t positions = model->config().encoder->max_positions;
        const std::int64_t longest = positions > 0 ? std::min<std::int64_t>(40, positions) : 40;
        check_scores(*model,
                     some_targets(std::min(model->config().vocabulary, model->config().source_vocabulary()), longest));
    }
}

TEST_CASE("Requests have the bits of float32 where weights stream", "[evaluation][residence]") {
    for (const char* name :
         {"llama", "mixtral", "native-gated_deltanet", "hybrid-jamba", "hybrid-qwen3-next", "t5", "bart"}) {
        INFO(name);
        test::TinyCheckpoint checkpoint = test::golden_checkpoint(name);
        checkpoint.file_type = "BF16";
        const auto held = checkpoint.build();
        const auto streamed = checkpoint.build(checkpoint::LoadAs::float32, model::Residence::stream);
        const model::ModelConfig& config = held->config();
        std::vector<HarnessRequest> requests;
        if (config.encoder) {
            const std::int64_t positions = config.encoder->max_positions;
            requests = some_targets(std::min(config.vocabulary, config.source_vocabulary()),
                                    positions > 0 ? std::min<std::int64_t>(40, positions) : 40);
        } else {
            requests = some_requests(config.vocabulary);
        }
        for (const std::int64_t batch : {60, 150, 4096}) {
            ScoreOptions options;
            options.batch_tokens = batch;
            options.beyond_positions = true;
            const auto expected = evaluation::score_requests(*held, requests, options);
            std::vector<std::uint64_t> read;
            // Each pass alone; contexts in another group than some of the passes that go on from them; all together.
            for (const std::int64_t group : {1, 200, 1 << 18}) {
                INFO("batches of " << batch << ", groups of " << group);
                options.group_tokens = group;
                std::int64_t done = 0;
                bool falls = false;
                const std::uint64_t before = test::bytes_read();
                const auto found = evaluation::score_requests(*streamed, requests, options, [&](std::int64_t now) {
                    falls = falls || now < done;
                    done = now;
                });
                read.push_back(test::bytes_read() - before);
                CHECK_FALSE(falls);
                CHECK(done == std::ssize(requests));
                REQUIRE(found.size() == expected.size());
                for (std::size_t i = 0; i < found.size(); ++i) {
                    CHECK(found[i].each == expected[i].each);
                    CHECK(found[i].greedy == expected[i].greedy);
                }
            }
            CHECK(read.back() <= read.front());
            if (batch < 4096) CHECK(read.back() < read.front());  // else all of BART's are one pass
        }
    }
}

TEST_CASE("Contexts of the requests above are really read ahead", "[evaluation]") {
    std::size_t ahead = 0;
    for (const auto& batch : evaluation::plan_passes(some_requests(37), {}).batches) ahead += batch.contexts.size();
    CHECK(ahead == 4);
}

TEST_CASE("Equal options are scored once and alike, and answers are greedy", "[evaluation]") {
    test::ScriptedModel model(counting());
    const std::vector<HarnessRequest> requests = {
        {{1, 2, 3, 4}, {}, 2}, {{1, 2, 3, 7}, {}, 2}, {{1, 2, 3, 4}, {}, 2}, {{1, 2, 3, 4}, {}, 3}};
    const auto scores = evaluation::score_requests(model, requests, {});
    CHECK(model.passes == 1);
    CHECK(model.tokens == 3);
    const double rest = std::log(8 + std::exp(5.0));
    CHECK(scores[0].loglikelihood == Approx(2 * (5 - rest)).epsilon(1e-6));
    CHECK(scores[0].greedy);
    CHECK(scores[1].loglikelihood == Approx(5 - 2 * rest).epsilon(1e-6));
    CHECK(!scores[1].greedy);
    CHECK(scores[1].each.size() == 2);
    CHECK(scores[2].loglikelihood == scores[0].loglikelihood);
    CHECK(scores[3].loglikelihood == Approx(3 * (5 - rest)).epsilon(1e-6));
    CHECK(evaluation::score_requests(model, {}, {}).empty());
}

TEST_CASE("Of equal logits the first is the greedy one, and none where they are no numbers", "[evaluation]") {
    test::ScriptedModel same(at::zeros({4, 4}));
    const std::vector<HarnessRequest> requests = {{{1, 0}, {}, 1}, {{1, 2}, {}, 1}};
    CHECK(evaluation::score_requests(same, requests, {})[0].greedy);
    CHECK(!evaluation::score_requests(same, requests, {})[1].greedy);
    test::ScriptedModel none(at::zeros({4, 4}).fill_(std::nan("")));
    CHECK(!evaluation::score_requests(none, requests, {})[0].greedy);
    CHECK(std::isnan(evaluation::score_requests(none, requests, {})[0].loglikelihood));
}

TEST_CASE("A stop ends scoring between passes, and what is no request is refused", "[evaluation]") {
    test::ScriptedModel model(counting());
    Cancellation cancellation;
    ScoreOptions options;
    options.batch_tokens = 1;
    options.cancellation = &cancellation;
    const std::vector<HarnessRequest> requests = {{{1, 2, 3}, {}, 1}, {{1, 2, 3, 4}, {}, 1}, {{4, 5}, {}, 1}};
    CHECK_THROWS_AS(evaluation::score_requests(model, requests, options, [&](std::int64_t) { cancellation.request(); }),
                    Stopped);
    CHECK(model.passes == 1);
    const std::vector<HarnessRequest> beyond = {{{1, 9}, {}, 1}}, sourced = {{{1, 2}, {3}, 2}};
    CHECK_THROWS_MATCHES(evaluation::score_requests(model, beyond, {}), Error,
                         test::IsError(ErrorCode::limit, "found 9"));
    CHECK_THROWS_MATCHES(evaluation::score_requests(model, sourced, {}), Error,
                         test::IsError(ErrorCode::usage, "requests without a source"));
    const auto bert = test::golden_checkpoint("bert").build();
    CHECK_THROWS_MATCHES(evaluation::score_requests(*bert, requests, {}), Error,
                         test::IsError(ErrorCode::usage, "expected a decoder"));
}

// SPDX-License-Identifier: GPL-3.0-or-later
// ask corpus of models with an encoder and a decoder: the decoder's self-attention over pairs of a source and its
// input.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include "core/ask/corpus/corpus.h"
#include "tests/core/ask/recorded_values.h"

using namespace headscope;
using model::Point;
using test::at_cell;
using test::near;

namespace {

/// Sources of 3 to 6 tokens with decoder inputs of 1 to 7, with repeats.
std::vector<store::SequenceTokens> drawn_pairs(std::size_t count) {
    std::vector<store::SequenceTokens> pairs;
    std::int32_t state = 7;
    const auto draw = [&state](std::size_t length) {
        store::SequenceTokens text;
        for (std::size_t i = 0; i < length; ++i) {
            state = (state * 37 + 11) % 101;
            text.ids.push_back(2 + state % 4);
            text.pieces.emplace_back("x");
        }
        return text;
    };
    for (std::size_t n = 0; n < count; ++n) {
        store::SequenceTokens text = draw(3 + n % 4);
        text.target = std::make_shared<const store::SequenceTokens>(draw(1 + n % 7));
        pairs.push_back(std::move(text));
    }
    return pairs;
}

model::Batch batch_of(const store::SequenceTokens& text) {
    const auto row = [](const std::vector<std::int32_t>& ids) {
        return at::tensor(std::vector<std::int64_t>(ids.begin(), ids.end()), at::kLong).unsqueeze(0);
    };
    model::Batch batch;
    batch.ids = row(text.ids);
    batch.target = row(text.target->ids);
    return batch;
}

}  // namespace

TEST_CASE("A corpus of pairs measures the decoder's attention to its own input", "[ask][corpus][encoder-decoder]") {
    const test::AskedModel asked("umt5");
    const std::vector<store::SequenceTokens> pairs = drawn_pairs(21);
    store::AskRecord record;
    record.tool = "corpus";
    record.mixers = asked.model->mixers();
    record.sites = asked.model->sites();
    record.sequences = {pairs[1]};
    store::add_usual_dimensions(record);
    ask::corpus::CorpusOptions options;
    options.documents = std::ssize(pairs);
    options.intervals = 2;
    options.two_passes = true;
    const auto source = [&pairs](std::int64_t first, std::int64_t end, const ask::corpus::CorpusTake& take) {
        for (std::int64_t d = first; d < std::min(end, std::ssize(pairs)); ++d)
            take(d, pairs[static_cast<std::size_t>(d)]);
    };
    NoProgress progress;
    ask::corpus::run_corpus(*asked.model, source, options, record, progress, Cancellation());
    CHECK(record.complete);
    std::vector<std::map<model::PointKey, at::Tensor>> patterns;
    for (const store::SequenceTokens& text : pairs)
        patterns.push_back(test::values_of_batch(asked, batch_of(text), {Point::pattern}));
    for (std::int64_t site = 0; site < std::ssize(record.sites); ++site) {
        INFO("site " << site);
        const Site& own = record.sites[static_cast<std::size_t>(site)];
        if (own.stack == "encoder" || own.is_cross()) {
            CHECK(std::isnan(at_cell(record, "/corpus/self_attention_score", {site, 1})));
            CHECK(std::isnan(at_cell(record, "/corpus/mean/sink", {site, 1})));
            continue;
        }
        double self = 0, previous = 0, distance = 0, induction = 0, tokens = 0, after = 0, repeats = 0;
        double sink = 0, texts = 0, largest = 0;
        for (std::size_t n = 0; n < pairs.size(); ++n) {
            const std::vector<std::int32_t>& ids = pairs[n].target->ids;
            if (ids.size() < 2) continue;
            const at::Tensor weights = patterns[n].at({Point::pattern, own.layer, site})[0][1].contiguous();
            const auto length = std::ssize(ids);
            double first = 0, maximum = 0;
            for (std::int64_t i = 0; i < length; ++i) {
                bool repeated = false;
                for (std::int64_t j = 0; j <= i; ++j) {
                    const double weight = weights[i][j].item<double>();
                    if (j == i) self += weight;
                    if (j + 1 == i) previous += weight;
                    if (j == 0) first += weight;
                    distance += weight * static_cast<double>(i - j);
                    const std::int32_t token = ids[static_cast<std::size_t>(i)];
                    if (j > 0 && ids[static_cast<std::size_t>(j - 1)] == token) induction += weight;
                    repeated = repeated || (j < i && ids[static_cast<std::size_t>(j)] == token);
                    if (i > 0 && j > 0) maximum = std::max(maximum, weight);
                }
                if (repeated) ++repeats;
            }
            tokens += static_cast<double>(length);
            after += static_cast<double>(length - 1);
            sink += first / static_cast<double>(length);
            largest += maximum;
            ++texts;
        }
        CHECK(near(at_cell(record, "/corpus/self_attention_score", {site, 1}), self / tokens, 1e-5));
        CHECK(near(at_cell(record, "/corpus/prev_token_score", {site, 1}), previous / after, 1e-5));
        CHECK(near(at_cell(record, "/corpus/qk_distance", {site, 1}), distance / tokens, 1e-5));
        CHECK(near(at_cell(record, "/corpus/induction_score", {site, 1}), induction / repeats, 1e-5));
        CHECK(near(at_cell(record, "/corpus/mean/sink", {site, 1}), sink / texts, 1e-5));
        CHECK(near(at_cell(record, "/corpus/maximum_mean", {site, 1}), largest / texts, 1e-5));
    }
    // Kept texts have what the decoder read with them.
    std::set<std::size_t> documents;
    for (std::size_t s = 0; s < record.sequences.size(); ++s) {
        const auto number = static_cast<std::int64_t>(s);
        const auto document = static_cast<std::size_t>(at_cell(record, "/corpus/document", {number}));
        documents.insert(document);
        REQUIRE(record.sequences[s].target != nullptr);
        CHECK(record.sequences[s].ids == pairs.at(document).ids);
        CHECK(record.sequences[s].target->ids == pairs.at(document).target->ids);
    }
    CHECK(documents.size() == record.sequences.size());
}

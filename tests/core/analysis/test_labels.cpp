// SPDX-License-Identifier: GPL-3.0-or-later
// Heads of classes, labels, and the regions of pairs.
#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <vector>

#include "core/analysis/request.h"
#include "core/base/error.h"
#include "core/store/analysis/analysis_file.h"
#include "tests/core/analysis/analysis_requests.h"
#include "tests/core/analysis/fake_model.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
using tests::analyse;
using tests::float_epsilon;
using tests::request_for;

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

// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/evaluation/metrics/answer_spans.h"
#include "core/evaluation/metrics/bleu.h"
#include "core/evaluation/metrics/classification.h"
#include "tests/oracle/golden.h"

using namespace headscope;

namespace {

const nlohmann::json& golden() {
    static const auto read = [] {
        std::ifstream file(test::golden_file("task_metrics.json"));
        return nlohmann::json::parse(file);
    }();
    return read;
}

/// Sums of fewer than a thousand float64 terms, and a root.
constexpr double kRounding = 1e-12;

void check_near(double found, double expected) {
    CHECK(found == Approx(expected).epsilon(kRounding).margin(kRounding));
}

}  // namespace

TEST_CASE("classes are scored as sklearn does", "[evaluation]") {
    for (const auto& item : golden().at("classes")) {
        const std::vector<std::int64_t> said = item.at("said"), truth = item.at("truth");
        check_near(evaluation::accuracy(said, truth), item.at("accuracy"));
        check_near(evaluation::f1_of_class(said, truth, 1), item.at("f1"));
        check_near(evaluation::f1_macro(said, truth), item.at("f1_macro"));
        check_near(evaluation::matthews(said, truth), item.at("matthews"));
    }
    CHECK(std::isnan(evaluation::accuracy({}, {})));
    CHECK(std::isnan(evaluation::f1_macro({}, {})));
    CHECK(std::isnan(evaluation::matthews({}, {})));
}

TEST_CASE("Spearman's correlation has mean ranks of equal numbers", "[evaluation]") {
    for (const auto& item : golden().at("numbers")) {
        const std::vector<double> said = item.at("said"), truth = item.at("truth");
        CHECK(evaluation::mean_ranks(said) == item.at("ranks").get<std::vector<double>>());
        check_near(evaluation::spearman(said, truth), item.at("spearman"));
    }
    const std::vector<double> one{1}, flat{2, 2, 2}, rising{1, 2, 3};
    const std::vector<double> none{1, std::numeric_limits<double>::quiet_NaN(), 3};
    CHECK(std::isnan(evaluation::spearman(one, one)));
    CHECK(std::isnan(evaluation::spearman(flat, rising)));
    CHECK(std::isnan(evaluation::spearman(rising, none)));
}

TEST_CASE("BLEU's tokens and scores are sacrebleu's", "[evaluation]") {
    for (const auto& item : golden().at("tokens")) {
        INFO(item.at(0));
        CHECK(evaluation::bleu_tokens(item.at(0).get<std::string>()) == item.at(1).get<std::vector<std::string>>());
    }
    std::size_t above = 0;
    for (const auto& item : golden().at("bleu")) {
        evaluation::BleuCounts counts;
        const std::vector<std::string> said = item.at("said"), truth = item.at("truth");
        for (std::size_t i = 0; i < said.size(); ++i) counts.add(said[i], truth[i]);
        INFO(item);
        check_near(counts.score(), item.at("score"));
        check_near(counts.brevity_penalty(), item.at("brevity"));
        above += counts.score() > 0 ? 1 : 0;
    }
    CHECK(above > 20);
    CHECK(evaluation::BleuCounts().score() == 0);
}

TEST_CASE("answers are judged as SQuAD judges them", "[evaluation]") {
    for (const auto& item : golden().at("normalized")) {
        INFO(item.at(0));
        CHECK(evaluation::normalized_answer(item.at(0).get<std::string>()) == item.at(1).get<std::string>());
    }
    for (const auto& item : golden().at("spans")) {
        INFO(item);
        const std::vector<std::string> truths = item.at(1);
        const auto score = evaluation::span_score(item.at(0).get<std::string>(), truths);
        check_near(score.f1, item.at(2));
        CHECK(score.exact == item.at(3).get<double>());
    }
}

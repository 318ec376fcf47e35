// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <map>

#include "core/base/error.h"
#include "core/cost/thesis.h"

using namespace headscope;

namespace {

/// The last digit printed: MHA's 28.31 M stands as 28.32 M.
constexpr double kDigit = 0.0101;

double millions(const std::string& name, std::int64_t heads, std::int64_t size, std::int64_t sublayers, bool output) {
    return cost::variant_parameters(cost::head_variant(name), heads, size, sublayers, output) / 1e6;
}

}  // namespace

TEST_CASE("Multi-head variants have the parameters of Tables 3.1 to 3.4", "[cost]") {
    const std::map<std::string, double> base{{"sha", 8.85},  {"standard", 28.32}, {"el_att", 14.16}, {"mqa", 15.34},
                                             {"skv", 21.23}, {"mhe_add", 8.88},   {"mhe_mul", 8.88}};
    for (const auto& [name, printed] : base) {
        INFO(name);
        CHECK(millions(name, 12, 64, 12, true) == Approx(printed).margin(kDigit));
    }
    const std::map<std::string, double> encoder_decoder{{"sha", 6.49},  {"standard", 18.87}, {"el_att", 9.44},
                                                        {"mqa", 10.62}, {"skv", 14.16},      {"mhe_add", 6.52}};
    for (const auto& [name, printed] : encoder_decoder) {
        INFO(name);
        CHECK(millions(name, 8, 64, 18, true) == Approx(printed).margin(kDigit));
    }
    const std::map<std::string, double> gpt3{
        {"standard", 43.48}, {"el_att", 14.50}, {"mqa", 14.80}, {"skv", 28.99}, {"mhe_mul", 0.46}};
    for (const auto& [name, printed] : gpt3) {
        INFO(name);
        CHECK(millions(name, 96, 128, 96, false) / 1e3 == Approx(printed).margin(kDigit));
    }
    CHECK_THROWS_AS(cost::head_variant("mha"), Error);
}

TEST_CASE("Complexities and parameters beyond SHA's are Table 3.4's", "[cost]") {
    // n heads of d; Table 3.4, but for MQA's, which is what its own formula of the parameters leaves.
    const double n = 12, d = 64;
    const std::map<std::string, std::pair<std::string, double>> printed{
        {"sha", {"n", 0}},
        {"standard", {"n^2", (3 * n * n - 3 * n) * d * d}},
        {"el_att", {"n^2", (n * n - 3 * n) * d * d}},
        {"mqa", {"n^2", (n * n - n) * d * d}},
        {"skv", {"n^2", (2 * n * n - 3 * n) * d * d}},
        {"mhe_add", {"n", 3 * n * d}},
        {"mhe_mul", {"n", 3 * n * d}}};
    const double of_sha = cost::variant_parameters(cost::head_variant("sha"), 12, 64, 1, false);
    for (const auto& [name, entry] : printed) {
        INFO(name);
        const cost::HeadVariant& variant = cost::head_variant(name);
        CHECK(variant.complexity == entry.first);
        CHECK(variant.added({{'n', n}, {'d', d}}) == entry.second);
        CHECK(cost::variant_parameters(variant, 12, 64, 1, false) - of_sha == entry.second);
    }
}

TEST_CASE("Memory of an attention block is Table 3.13's", "[cost]") {
    const auto mha = cost::block_memory(cost::head_variant("standard"), 12, 64, 32, 512);
    CHECK(mha.weights == 14155776);
    CHECK(mha.gradients == 14155776);
    CHECK(mha.adam == 18874368);
    CHECK(mha.activations == 25165824);
    CHECK(mha.total() == 72351744);
    CHECK(cost::block_memory(cost::head_variant("mhe_add"), 12, 64, 32, 512).total() == 39957504);
    const std::map<std::string, double> savings{{"sha", 44.84}, {"standard", 0}, {"el_att", 32.61},
                                                {"mqa", 29.89}, {"skv", 16.30},  {"mhe_mul", 44.77}};
    for (const auto& [name, printed] : savings) {
        INFO(name);
        CHECK(100 * cost::memory_saving(cost::head_variant(name), 12, 64, 32, 512) == Approx(printed).margin(0.005));
    }
}

TEST_CASE("Retention and elasticity are those of Tables 3.1 and 3.2", "[cost]") {
    // GLUE: SHA 79.2, MHA 81.9; WikiText-103 perplexity: SHA 62.0, MHA 43.0; 8.85M against 28.32M parameters.
    CHECK(100 * cost::performance_retention(79.2, 81.9, false) == Approx(96.7).margin(0.05));
    CHECK(cost::performance_elasticity(81.9, 79.2, 28.32, 8.85, false) == Approx(0.02).margin(0.005));
    CHECK(100 * cost::performance_retention(62.0, 43.0, true) == Approx(55.8).margin(0.05));
    CHECK(cost::performance_elasticity(43.0, 62.0, 28.32, 8.85, true) == Approx(0.14).margin(0.005));
}

TEST_CASE("Hash embeddings have the parameters of chapter 2", "[cost]") {
    const auto count = [](const std::string& name, std::int64_t rows, std::int64_t bits = 128) {
        return cost::embedding_parameters(cost::hash_embedding(name), rows, bits, 10, 768);
    };
    CHECK(count("table", 50265) / 1e6 == Approx(38.6).margin(0.05));
    CHECK(count("emb", 50260) == count("table", 50265));
    CHECK(count("emb", 1033) / 1e3 == Approx(797.2).margin(0.05));
    CHECK(count("pool", 0) / 1e3 == Approx(797.2).margin(0.05));
    CHECK(count("add", 0) / 1e3 == Approx(197.4).margin(0.05));
    CHECK(count("proj", 0) / 1e3 == Approx(99.1).margin(0.05));
    CHECK(count("characters", 0) / 1e6 == Approx(12.3).margin(0.05));
    CHECK(count("linear", 0, 420) / 1e3 == Approx(322.6).margin(0.05));
    CHECK_THROWS_AS(cost::hash_embedding("canine"), Error);
}

TEST_CASE("Table 2.2's shares follow from its counts", "[cost]") {
    // Parameters and embeddings of models of two classes (in thousands), and the printed values: the
    // share of the baseline's that is saved of all and of the embeddings, and the share of embeddings, in per cent.
    struct Row {
        double all, embedding, pcr_all, pcr_emb, poep;
    };
    const double base = 124645634, base_embedding = 50265 * 768;
    CHECK(base_embedding / base == Approx(0.310).margin(0.0005));
    // PoEP of Pool and Emb (1K) is printed as 1.0.
    const std::map<std::string, Row> printed{{"emb", {86839298, 797184, 30.3, 97.9, 0.92}},
                                             {"pool", {86843138, 797184, 30.3, 97.9, 0.92}},
                                             {"add", {86243330, 197376, 30.8, 99.5, 0.2}},
                                             {"proj", {86145026, 99072, 30.9, 99.7, 0.1}},
                                             {"linear", {15094274, 322560, 87.9, 99.2, 2.1}}};
    for (const auto& [name, row] : printed) {
        INFO(name);
        CHECK(cost::embedding_parameters(cost::hash_embedding(name), 1033, name == "linear" ? 420 : 128, 10, 768) ==
              row.embedding);
        CHECK(100 * cost::parameter_saving(row.all, base) == Approx(row.pcr_all).margin(0.05));
        CHECK(100 * cost::parameter_saving(row.embedding, base_embedding) == Approx(row.pcr_emb).margin(0.05));
        CHECK(100 * row.embedding / row.all == Approx(row.poep).margin(0.05));
    }
}

TEST_CASE("Attention of larger stacks has the parameters of Tables 3.14 and 3.15", "[cost]") {
    for (const auto& [name, printed] : {std::pair("standard", 100.66), std::pair("mhe_mul", 29.96)}) {
        INFO(name);
        CHECK(millions(name, 16, 64, 24, true) == Approx(printed).margin(0.0051));
    }
    struct Stack {
        std::int64_t heads, size, layers;
        double multiple, embedded;  ///< MHA's and MHE-MUL's, in millions
    };
    // base, 16h, 4h, 4l, 8l, 12h, big; a decoder's layers attend twice.
    for (const Stack& stack :
         {Stack{8, 64, 12, 18.87, 6.52}, Stack{16, 32, 12, 18.87, 5.63}, Stack{4, 128, 12, 18.87, 8.29},
          Stack{8, 64, 8, 12.58, 4.34}, Stack{8, 64, 16, 25.17, 8.69}, Stack{12, 64, 12, 42.47, 13.31},
          Stack{16, 64, 12, 75.50, 22.47}}) {
        INFO(stack.heads << " heads, " << stack.layers << " layers");
        const std::int64_t sublayers = 3 * stack.layers / 2;
        CHECK(millions("standard", stack.heads, stack.size, sublayers, true) == Approx(stack.multiple).margin(0.0051));
        CHECK(millions("mhe_mul", stack.heads, stack.size, sublayers, true) == Approx(stack.embedded).margin(0.0051));
    }
}

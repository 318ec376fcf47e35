// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/cost/mixer_cost.h"
#include "core/mixers/types/type.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using cost::CostSetting;

namespace {

// Sizes without common factors, so that no two different formulas agree by chance.
constexpr double B = 3, L = 101, d = 56, h = 7, t = 2;
const CostSetting kSetting{3, 101, 56, 7, 2, 2};

/// Tables 5 to 8 once more, typed from the paper.
struct Printed {
    double time, prefill, decode, activation, cache;
};
const std::map<std::string, Printed>& printed() {
    static const Printed standard{B * L * L * d + B * L * d * d, 4 * B * L * L * d + 6 * B * L * d * d,
                                  6 * B * d * d + 4 * B * L * d, (8 * B * L * d + 2 * B * L * L * h) / t,
                                  4 * B * L * d};
    static const Printed fixed{B * L * L * d + B * L * d * d, 2 * L * L * d + 2 * B * L * L * d + 6 * B * L * d * d,
                               2 * L * d + 2 * B * L * d + 6 * B * d * d,
                               (4 * B * L * d + 8 * L * d + 2 * L * L * h) / t, 2 * (B + 1) * L * d};
    static const std::map<std::string, Printed> table{
        {"standard", standard},
        {"mlp", {B * L * d * d, 6 * B * L * d * d, 6 * B * d * d, 8 * B * L * d / t, 0}},
        {"approximate",
         {B * L * d * d, 14 * B * L * d * d, 10 * B * d * d, 11 * B * L * d / t + 3 * B * d * d / (h * t),
          6 * B * d + 4 * B * d * d / h}},
        {"non_approximate",
         {B * L * d * d, 6 * B * L * d * d, 6 * B * d * d, (8 * B * L * d + 4 * B * L * h) / t, 2 * B * d + 4 * B * h}},
        {"rnd_emb_qk", fixed},
        {"fixed_seq_qk", fixed},
        {"static_emb_qk", standard},
        // The third paper's mixers that differ from it in one thing.
        {"sigmoid", standard},
        {"alibi", standard},
        {"sink_logits", standard}};
    return table;
}

}  // namespace

TEST_CASE("Every entry of Tables 5 to 8 is the paper's", "[cost]") {
    std::size_t papers = 0;
    for (const auto& entry : cost::mixer_costs()) {
        if (entry.activation.text().empty()) continue;  // ours
        INFO(entry.mixer);
        ++papers;
        const Printed& wanted = printed().at(entry.mixer);
        const cost::CostNumbers found = cost::evaluate(entry, kSetting);
        CHECK(found.time == wanted.time);
        CHECK(found.prefill == wanted.prefill);
        CHECK(found.decode == wanted.decode);
        CHECK(found.activation == wanted.activation);
        CHECK(found.cache == wanted.cache);
        CHECK(found.parameters == 3 * d * d + (entry.mixer == "sink_logits" ? h : 0));
        const bool fixed = entry.mixer == "rnd_emb_qk" || entry.mixer == "fixed_seq_qk";
        REQUIRE(found.precomputed_prefill.has_value() == fixed);
        REQUIRE(found.precomputed_decode.has_value() == fixed);
        if (!fixed) continue;
        CHECK(*found.precomputed_prefill == 2 * L * L * d + 2 * B * L * d * d);
        CHECK(*found.precomputed_decode == 2 * B * L * d + 2 * d * d);
    }
    CHECK(papers == printed().size());
}

TEST_CASE("Scores computed before and maps of steps to come cost what appendices E and H print", "[cost]") {
    CostSetting setting = kSetting;
    setting.layers = 24;
    for (const auto& entry : cost::mixer_costs()) {
        INFO(entry.mixer);
        const bool guided = entry.mixer == "rnd_emb_qk" || entry.mixer == "fixed_seq_qk";
        setting.prefetch = 0;
        CHECK_FALSE(cost::evaluate(entry, setting).prefetch);
        setting.prefetch = 5;
        const cost::CostNumbers found = cost::evaluate(entry, setting);
        REQUIRE(found.prefetch.has_value() == guided);
        if (guided) CHECK(*found.prefetch == 2 * (2 * L + 5) * 5);
        REQUIRE(found.scores_before.has_value() == (entry.mixer == "static_emb_qk"));
        if (found.scores_before) CHECK(*found.scores_before == 23 * (B * L * L * d + B * L * d * d));
    }
}

TEST_CASE("Normalizers have the times and kernels of Table 2 of Lazy Attention", "[cost]") {
    std::map<std::string, std::pair<std::string, std::string>> found;
    for (const auto& one : cost::normalizer_costs(*mixers::find_type("lazy"))) found[one.name] = {one.time, one.flash};
    CHECK(found == std::map<std::string, std::pair<std::string, std::string>>{{"softmax", {"n^2", "native"}},
                                                                              {"elastic", {"n^2", "two-pass"}},
                                                                              {"sparsemax", {"n^2 log n", "two-pass"}},
                                                                              {"entmax", {"n^2 log n", "two-pass"}}});
    CHECK(cost::normalizer_costs(*mixers::find_type("standard")).size() == 2);
    CHECK(cost::normalizer_costs(*mixers::find_type("mlp")).empty());
}

TEST_CASE("Every other mixer costs what a count step by step finds", "[cost][golden]") {
    std::ifstream stream(test::golden_file("mixer_cost.json"));
    const auto document = nlohmann::json::parse(stream);
    std::set<std::string> counted;
    for (const auto& from : document.at("cases")) {
        const auto mixer = from.at("mixer").get<std::string>();
        INFO(mixer << " " << from.at("options").dump());
        counted.insert(mixer);
        const mixers::MixerType& type = *mixers::find_type(mixer);
        CostSetting setting;
        document.at("batch").get_to(setting.batch);
        document.at("length").get_to(setting.length);
        document.at("hidden").get_to(setting.hidden);
        document.at("heads").get_to(setting.heads);
        document.at("bytes").get_to(setting.bytes);
        document.at("softmax_share").get_to(setting.softmax_share);
        for (const auto& [key, value] : from.at("options").items()) {
            if (value.is_boolean()) setting.options.set(type, key, value.get<bool>());
            if (value.is_number_integer()) setting.options.set(type, key, value.get<std::int64_t>());
            if (value.is_number_float()) setting.options.set(type, key, value.get<double>());
            if (value.is_string()) setting.options.set(type, key, value.get<std::string>());
        }
        const cost::CostNumbers found = cost::evaluate(cost::mixer_cost(mixer), setting);
        CHECK(found.parameters == Approx(from.at("parameters").get<double>()).epsilon(1e-12));
        CHECK(found.prefill == Approx(from.at("prefill").get<double>()).epsilon(1e-12));
        for (const auto& [key, value] : {std::pair("decode", found.decode), std::pair("cache", found.cache)}) {
            if (from.at(key).is_null())
                CHECK(std::isnan(value));  // of encoders
            else
                CHECK(value == Approx(from.at(key).get<double>()).epsilon(1e-12));
        }
        CHECK(std::isnan(found.activation));
        // Rows of the models' own head sizes: those that the options leave out, of mixers with such sizes.
        setting.head_size = 9;
        const bool own = from.at("options").contains("head_dim") ||
                         cost::mixer_cost(mixer).prefill.text().find('k') == std::string::npos;
        CHECK((cost::evaluate(cost::mixer_cost(mixer), setting).prefill == found.prefill) == own);
    }
    // Those and the papers' are all that there are.
    for (const std::string& mixer : mixers::known_names()) {
        INFO(mixer);
        CHECK(counted.count(mixer) + printed().count(mixer) == 1);
        CHECK(cost::has_cost(mixer));
    }
}

TEST_CASE("NAtS-L's cost grows with the share of softmax chunks", "[cost]") {
    CostSetting none = kSetting, all = kSetting;
    none.softmax_share = 0;
    all.softmax_share = 1;
    const auto& entry = cost::mixer_cost("natsl");
    const auto least = cost::evaluate(entry, none), most = cost::evaluate(entry, all);
    // 7 heads of 8 x 16: every pair of tokens, less those of a chunk of 64.
    CHECK(most.prefill - least.prefill == Approx(2 * B * L * 7 * (8 + 16) * (L - 64)));
    CHECK(most.cache - least.cache == Approx(2 * B * L * 7 * (8 + 16)));
    CHECK(most.parameters == least.parameters);
}

TEST_CASE("Bytes of the paper are for half precision and scale with a number's", "[cost]") {
    CostSetting single = kSetting;
    single.bytes = 4;
    for (const auto& entry : cost::mixer_costs()) {
        const auto two = cost::evaluate(entry, kSetting), four = cost::evaluate(entry, single);
        if (!entry.activation.text().empty()) CHECK(four.activation == 2 * two.activation);
        if (!entry.cache.text().empty()) CHECK(four.cache == 2 * two.cache);
        CHECK(four.prefill == two.prefill);
    }
}

TEST_CASE("A formula is computed as it reads", "[cost]") {
    const cost::Letters letters{{'a', 3}, {'b', 5}};
    CHECK(cost::Formula("2 a^2 b - a + 7")(letters) == 94);
    CHECK(cost::Formula("2 (a + b) b / a")(letters) == Approx(80.0 / 3));
    CHECK(cost::Formula("a / (a b) b")(letters) == Approx(1));
    CHECK(cost::Formula("(a + 1)^2")(letters) == 16);
    CHECK(cost::Formula("0")(letters) == 0);
    CHECK(std::isnan(cost::Formula("")(letters)));
    CHECK(cost::Formula("4 B L^2 d").pretty() == "4 B L² d");
    CHECK_THROWS_AS(cost::Formula("2 a +"), Error);
    CHECK_THROWS_AS(cost::Formula("(a"), Error);
    CHECK_THROWS_AS(cost::Formula("a ^ b"), Error);
    CHECK_THROWS_AS(cost::Formula("a)"), Error);
    CHECK_THROWS_AS(cost::Formula("c")(letters), Error);
}

TEST_CASE("A mixer without an entry is named with those that have one", "[cost]") {
    CHECK(cost::mixer_cost("approximate").title == "Approximate");
    CHECK(cost::has_cost("gated_deltanet"));
    CHECK_FALSE(cost::has_cost("cross"));
    CHECK_THROWS_WITH(cost::mixer_cost("standart"), Catch::Contains("non_approximate") && Catch::Contains("standart"));
}

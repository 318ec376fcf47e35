// SPDX-License-Identifier: GPL-3.0-or-later
// `cost`: formulas of the papers, variants and embeddings, measured models, latency.
#include <catch2/catch.hpp>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "core/store/evaluation/evaluation_file.h"
#include "tests/app/expectations.h"
#include "tests/app/files.h"
#include "tests/app/program.h"

using namespace headscope;
using namespace headscope::testing;
using nlohmann::json;

TEST_CASE("cost --latency times models, as table, JSON and a file that its figure draws", "[app][cost]") {
    const TemporaryFolder folder;
    const std::string model = sample().string(), file = (folder / "a.evaluation.h5").string();
    const Outcome table = run_headscope({"cost", model, "--latency", "--lengths", "8,16", "-o", file});
    check_success(table);
    CHECK(table.out.find("one token") != std::string::npos);
    const auto stored = store::read_evaluation(file);
    REQUIRE(stored.models.size() == 1);
    for (const std::int64_t length : {8, 16}) {
        const auto* median = stored.find(0, "prefill", "seconds", length);
        const auto* high = stored.find(0, "prefill", "seconds_p90", length);
        REQUIRE(median != nullptr);
        REQUIRE(high != nullptr);
        CHECK(median->value > 0);
        CHECK(median->value <= high->value);
        CHECK(median->count >= 5);
        CHECK(stored.find(0, "decode", "seconds", length) != nullptr);
    }
    check_success(run_headscope({"export", file, "--figure", "latency", "-o", (folder / "a.csv").string()}));
    CHECK(read_file(folder / "a.csv").starts_with("model,task,length,seconds"));
    const json document =
        json::parse(run_headscope({"cost", model, model, "--latency", "--lengths", "8", "--json"}).out);
    CHECK(document.at("models").size() == 2);
    CHECK(document.at("settings").at("latency").at("batch") == 1);
    check_usage_error(run_headscope({"cost", "--latency"}));
    check_usage_error(run_headscope({"cost", model, model}));
    check_usage_error(run_headscope({"cost", model, "--latency", "--measure"}));
}

TEST_CASE("cost counts variants of multi-head attention and hash embeddings", "[app][cost]") {
    const TemporaryFolder folder;
    // 6 layers that attend once and 6 that do twice.
    const Outcome both = run_headscope({"cost", "--preset", "mhe-translation-base", "--variants", "--json"});
    check_success(both);
    const json variants = json::parse(both.out).at("variants");
    REQUIRE(variants.size() == 7);
    CHECK(variants.at(0).at("mixer") == "sha");
    CHECK(variants.at(1).at("stack_with_output") == 18 * 4 * 512 * 512);
    CHECK(variants.at(6) == json{{"mixer", "mhe_mul"},
                                 {"complexity", "n"},
                                 {"parameters_formula", "3 d^2 n + 3 d n"},
                                 {"added_formula", "3 n d"},
                                 {"added", 3 * 8 * 64},
                                 {"sublayer", 99840},
                                 {"sublayer_with_output", 361984},
                                 {"stack", 1797120},
                                 {"stack_with_output", 6515712},
                                 {"memory",
                                  {{"weights", 2171904},
                                   {"gradients", 2171904},
                                   {"adam", 2895872},
                                   {"activations", 16777216},
                                   {"total", 24016896}}},
                                 {"saving", variants.at(6).at("saving")}});
    const auto gpt2 = write_file(folder / "config.json", R"({"model_type": "gpt2", "n_embd": 768, "n_head": 12,
        "n_layer": 12, "vocab_size": 50257, "n_positions": 1024})");
    const json decoder = json::parse(run_headscope({"cost", "--config", gpt2.string(), "--variants", "--json"}).out);
    CHECK(decoder.at("variants").at(1).at("stack_with_output") == 28311552);
    // Table 3.13: saving of SHA.
    const json base = json::parse(run_headscope({"cost", "--preset", "mhe-encoder-base", "--variants", "--batch", "32",
                                                 "--length", "512", "--json"})
                                      .out);
    CHECK(base.at("variants").at(0).at("saving").get<double>() == Approx(0.4484).margin(5e-5));
    CHECK(run_headscope({"cost", "--preset", "mhe-encoder-base", "--variants"}).out.find("44.84 %") !=
          std::string::npos);

    // Appendices E and H of "Deconstructing Attention", Table 2 of "Lazy Attention".
    const json shared =
        json::parse(run_headscope({"cost", "--config", gpt2.string(), "--mixers", "static_emb_qk,rnd_emb_qk,lazy",
                                   "--lengths", "100", "--prefetch", "8", "--json"})
                        .out);
    CHECK(shared.at("rows").at(0).at("paper").at("scores_before_saving") == 11.0 * (1e4 * 768 + 100.0 * 768 * 768));
    CHECK(shared.at("rows").at(1).at("paper").at("prefetch_cache_bytes") == 2 * (200 + 8) * 8);
    CHECK(shared.at("formulas").at("lazy").at("normalizers").size() == 4);
    CHECK_FALSE(shared.at("rows").at(2).at("paper").contains("prefetch_cache_bytes"));
    check_usage_error(run_headscope({"cost", "--variants", "--prefetch", "8"}));

    const json embeddings = json::parse(run_headscope({"cost", "--embeddings", "--hidden", "768", "--rows", "50265",
                                                       "--bits", "128", "--group-bits", "10", "--json"})
                                            .out);
    std::map<std::string, std::int64_t> counts;
    for (const json& one : embeddings.at("embeddings"))
        counts[one.at("kind").get<std::string>()] = one.at("parameters").get<std::int64_t>();
    CHECK(counts == std::map<std::string, std::int64_t>{{"table", 38603520},
                                                        {"emb", 38607360},
                                                        {"pool", 797184},
                                                        {"add", 197376},
                                                        {"proj", 99072},
                                                        {"linear", 98304},
                                                        {"characters", 12288000}});
    CHECK(run_headscope({"cost", "--embeddings"}).out.find("(2 T + 1) d") != std::string::npos);
    check_usage_error(run_headscope({"cost", "--embeddings", "--preset", "proformer"}));
    check_usage_error(run_headscope({"cost", "--embeddings", "--variants"}));
    check_usage_error(run_headscope({"cost", "--variants", "--measure"}));
}

TEST_CASE("cost lists the lengths that a measured model has no positions for", "[app][cost]") {
    const auto measured = [](const std::string& lengths) {
        const Outcome outcome = run_headscope({"cost", sample().string(), "--measure", "--mixers", "mlp", "--lengths",
                                               lengths, "--threads", "1", "--json"});
        INFO(outcome.err);
        REQUIRE(outcome.status == 0);
        return outcome;
    };
    const Outcome cut = measured("8,1024");  // the sample has 1024 positions, and one more token is decoded
    CHECK(cut.err.find("headscope: the whole model is not measured at 1024 tokens: ") != std::string::npos);
    const json document = json::parse(cut.out);
    CHECK(document.at("whole_model_left_out") == json::array({1024}));
    REQUIRE(document.at("whole_model").size() == 1);
    CHECK(document.at("whole_model").at(0).at("length") == 8);
    const Outcome all = measured("8");
    CHECK(all.err.find("not measured") == std::string::npos);
    CHECK(json::parse(all.out).at("whole_model_left_out") == json::array());
}

TEST_CASE("cost prints the paper's numbers, and measured ones beside them", "[app][cost]") {
    const TemporaryFolder folder;
    const json document = json::parse(
        run_headscope({"cost", "--preset", "deconattn-500m", "--lengths", "2048", "--batch", "3", "--json"}).out);
    REQUIRE(document.at("rows").size() == 30);  // every mixer
    const json& standard = document.at("rows").at(0);
    CHECK(standard.at("mixer") == "standard");
    CHECK(standard.at("paper").at("prefill_flops") == 4.0 * 3 * 2048 * 2048 * 896 + 6.0 * 3 * 2048 * 896 * 896);
    CHECK(standard.at("paper").at("cache_bytes") == 4.0 * 3 * 2048 * 896);
    CHECK(document.at("formulas").at("approximate").at("cache_bytes") == "6 B d + 4 B d^2 / h");

    const Outcome measured = run_headscope({"cost", "--preset", "nano-100k", "--lengths", "32", "--measure", "--mixers",
                                            "standard,mlp", "-o", (folder / "a.csv").string()});
    check_success(measured);
    CHECK(measured.out.find("measured") != std::string::npos);
    CHECK(measured.out.find("Measured on cpu, kernels ") != std::string::npos);
    const std::string csv = read_file(folder / "a.csv");
    CHECK(csv.find("\nmlp,1,32,64,4,1,4,") != std::string::npos);
    CHECK(csv.find(",device,kernels\n") != std::string::npos);
    CHECK(csv.find(",cpu,") != std::string::npos);
    const json here = json::parse(run_headscope({"cost", "--preset", "nano-100k", "--lengths", "32", "--measure",
                                                 "--mixers", "mlp", "--threads", "1", "--json"})
                                      .out);
    CHECK(here.at("setting").at("device") == "cpu");
    CHECK_FALSE(here.at("setting").at("kernels").get<std::string>().empty());
    CHECK(here.at("setting").at("threads") == 1);
    CHECK_FALSE(here.at("setting").contains("on_device"));
    CHECK(here.at("rows").at(0).at("measured").at("prefill_seconds").get<double>() > 0);
    CHECK_FALSE(document.at("setting").contains("device"));  // nothing was measured
    check_refusal(run_headscope({"cost", "--preset", "nano"}), "nano-100k");
    // Formulas need the sizes of a model alone, of whichever family; to be measured it must be one of our stacks.
    const auto gpt2 = write_file(folder / "config.json", R"({"model_type": "gpt2", "n_embd": 768, "n_head": 12,
        "n_layer": 12, "vocab_size": 50257, "n_positions": 1024})");
    const json sizes = json::parse(run_headscope({"cost", "--config", gpt2.string(), "--json"}).out);
    CHECK(sizes.at("setting").at("hidden") == 768);
    CHECK(sizes.at("setting").at("heads") == 12);
    check_refusal(run_headscope({"cost", "--config", gpt2.string(), "--measure", "--lengths", "32"}), "other norms");
    check_refusal(run_headscope({"cost", "--mixers", "standart"}), "non_approximate");
    const json linear = json::parse(run_headscope({"cost", "--mixers", "linear", "--lengths", "8", "--json"}).out);
    CHECK(linear.at("rows").at(0).at("paper").at("cache_bytes").is_null());  // encoders alone have it
    check_usage_error(run_headscope({"cost", sample().string(), "--preset", "nano-100k"}));
}

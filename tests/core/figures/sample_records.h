// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/figures/figure_data.h"
#include "core/store/evaluation/evaluation_file.h"
#include "core/store/run/run_record.h"

namespace headscope::test {

/// A run of `layers` layers, the last without a matrix, whose loss falls with noise; a validation every 20 steps, a
/// probe every 50.
inline store::RunRecord sample_record(const std::string& name, int steps = 400, int layers = 3, double offset = 0) {
    store::RunRecord run;
    run.name = name;
    run.state = "finished";
    run.config_json = R"({"hidden_size": 256, "num_attention_heads": 4, "max_position_embeddings": 256})";
    for (int l = 0; l < layers; ++l) {
        run.mixers.emplace_back(l + 1 < layers ? "standard" : "mlp");
        Site site;
        site.layer = l;
        site.heads = 4;
        site.has_matrix = l + 1 < layers;
        run.sites.push_back(site);
    }
    std::uint32_t state = 12345;
    const auto noise = [&state] {
        state = state * 1664525U + 1013904223U;
        return static_cast<double>(state >> 8U) / 16777216.0 - 0.5;
    };
    const auto loss = [&](int n) { return 2.2 + offset + 3.3 * std::exp(-n / 60.0); };
    for (int n = 1; n <= steps; ++n) {
        auto& t = run.training;
        t.step.push_back(n);
        t.tokens.push_back(n * std::int64_t{4096});
        t.loss.push_back(loss(n) + 0.25 * noise());
        t.learning_rate.push_back(1e-3);
        t.gradient_norm.push_back(1 + noise());
        t.tokens_per_second.push_back(2e4);
        t.seconds.push_back(0.2 * n);
        t.memory.push_back(3e8);
        if (n % 20 == 0) {
            run.validation.step.push_back(n);
            run.validation.tokens.push_back(8192);
            run.validation.loss.push_back(loss(n) + 0.05);
            run.validation.seconds.push_back(0.3);
        }
    }
    auto& p = run.probes;
    for (const char* indicator : {"entropy", "concentration", "sink", "induction"})
        p.indicators.push_back({indicator, true, 1, {}});
    p.indicators.push_back({"head_diversity", false, 1, {}});
    p.indicators.push_back({"local_focus", true, 4, {}});
    p.thumbnail_size = 8;
    for (int n = 0; n <= steps; n += 50) {
        p.step.push_back(n);
        p.seconds.push_back(0.05);
        const double learned = 1 - std::exp(-n / 150.0);
        for (int l = 0; l < layers; ++l) {
            const double none = l + 1 < layers ? 0 : std::nan("");
            p.indicators[4].values.push_back(0.05 + 0.1 * learned * l + none);
            for (int h = 0; h < 4; ++h) {
                p.indicators[0].values.push_back(900 - 500 * learned + 60 * h + 40 * l + none);
                p.indicators[1].values.push_back(3 + 4 * learned + 0.3 * h + none);
                p.indicators[2].values.push_back(0.02 + 0.4 * learned / (h + 1) + none);
                p.indicators[3].values.push_back(0.01 + 0.5 * learned * (h == 1 && l == 1) + none);
                for (int d = 0; d < 4; ++d) p.indicators[5].values.push_back((h == d ? 0.5 : 0.1) * learned + none);
                for (int q = 0; q < 8; ++q) {
                    for (int k = 0; k < 8; ++k) {
                        const bool seen = k <= q && none == 0;
                        p.thumbnails.push_back(seen ? (k == q - h ? 0x3800 : 0x2E66) : (none == 0 ? 0 : 0x7E00));
                    }
                }
            }
        }
    }
    return run;
}

/// Standard, and two mixers in four layouts, at two sizes, three seeds and four lengths.
inline store::Evaluation sample_evaluation() {
    store::Evaluation all;
    int k = 0;
    for (const std::int64_t parameters : {1'000'000, 5'000'000}) {
        for (const char* mixer : {"standard", "rnd_emb_qk", "non_approximate"}) {
            for (const char* layout : {"uniform", "even", "last", "quarter"}) {
                if (std::string(mixer) == "standard" && std::string(layout) != "uniform") continue;
                for (int seed = 1; seed <= 3; ++seed, ++k) {
                    store::EvaluatedModel model;
                    model.name = std::string(mixer) + "-" + layout;
                    model.mixer = mixer;
                    model.layout = layout;
                    model.parameters = parameters;
                    model.layers = 4;
                    model.training_length = 256;
                    model.seed = seed;
                    const auto index = static_cast<std::int64_t>(all.models.size());
                    all.models.push_back(model);
                    const bool bad = std::string(mixer) == "non_approximate" && std::string(layout) != "even";
                    for (const std::int64_t length : {64, 128, 256, 512}) {
                        const double base = (bad                                ? 90.0
                                             : std::string(mixer) == "standard" ? 12.0
                                                                                : 13.0) *
                                            (parameters > 2'000'000 ? 0.8 : 1.0);
                        const double value = base * (1 + 8.0 / static_cast<double>(length)) + 0.2 * seed +
                                             (std::string(layout) == "last" ? 2 : 0);
                        all.results.push_back({index, "perplexity", "token_perplexity", length, value, 0.1, 10000});
                        all.results.push_back({index, "perplexity", "loss", length, std::log(value), 0.01, 10000});
                    }
                    all.results.push_back({index, "mqar", "accuracy", 256, bad ? 0.1 : 0.9, 0.02, 500});
                }
            }
        }
    }
    return all;
}

/// Three models on long texts: perplexity by position, RULER's tasks at three lengths, latency.
inline store::Evaluation sample_long_evaluation() {
    store::Evaluation all;
    for (const char* mixer : {"standard", "gated_deltanet", "natsl"}) {
        const auto index = static_cast<std::int64_t>(all.models.size());
        store::EvaluatedModel model;
        model.name = mixer;
        model.mixer = mixer;
        model.layout = "uniform";
        model.parameters = 1'000'000;
        model.layers = 4;
        model.training_length = 1024;
        all.models.push_back(model);
        const bool softmax = index == 0;
        for (std::int64_t bucket = 1; bucket <= 32; ++bucket) {
            const double x = static_cast<double>(bucket);
            const double value = 20 + 10 / x + (softmax && bucket > 8 ? 2 * (x - 8) : 0) + (bucket % 2 == 0 ? 0.5 : 0);
            all.results.push_back(
                {index, "position_perplexity", "token_perplexity", 128 * bucket, value, 0.1, 128 * 20});
        }
        for (const char* task : {"niah_single_1", "niah_multikey_1", "ruler_retrieval", "ruler_vt"})
            for (const std::int64_t length : {1024, 2048, 4096})
                all.results.push_back({index, task, "score", length,
                                       softmax && length > 1024 ? 0.1 : 0.9 - 0.1 * static_cast<double>(index), 0.03,
                                       100});
        for (const std::int64_t length : {1024, 2048, 4096}) {
            const double once = 1e-5 * static_cast<double>(length) * (softmax ? static_cast<double>(length) / 1024 : 1);
            for (const auto& [task, time] : {std::pair{"prefill", once}, std::pair{"decode", 1e-3}}) {
                all.results.push_back({index, task, "seconds", length, time, std::nan(""), 7});
                all.results.push_back({index, task, "seconds_p10", length, 0.9 * time, std::nan(""), 7});
                all.results.push_back({index, task, "seconds_p90", length, 1.2 * time, std::nan(""), 7});
            }
            all.results.push_back({index, "prefill", "peak_bytes", length, 1e6, std::nan(""), 7});
            all.results.push_back({index, "prefill", "cache_bytes", length, 2e5, std::nan(""), 7});
        }
    }
    return all;
}

/// Three models on lm-eval's tasks, with baselines and some items: options, said answers, language modelling; one task
/// with five examples, another without a number for the last model.
inline store::Evaluation sample_task_evaluation() {
    store::Evaluation all;
    const auto add = [&](std::int64_t model, const char* task, const char* metric, double value, double error,
                         std::int64_t shots = 0) {
        all.results.push_back({model, task, metric, 2048, value, error, 400, shots});
    };
    const double none = std::nan("");
    for (const char* name : {"standard", "mlp-uniform", "mlp-even"}) {
        const auto m = static_cast<std::int64_t>(all.models.size());
        store::EvaluatedModel model;
        model.name = name;
        model.mixer = m == 0 ? "standard" : "mlp";
        model.layout = m == 2 ? "even" : "uniform";
        model.parameters = 1'000'000;
        model.layers = 4;
        model.training_length = 2048;
        model.seed = 1;
        all.models.push_back(model);
        const double worse = m == 0 ? 0 : m == 1 ? 0.15 : 0.05;  // uniform is worst, but for boolq
        add(m, "arc_easy", "acc", 0.55 - worse, 0.0249);
        add(m, "arc_easy", "acc_norm", 0.5 - worse, 0.025);
        add(m, "arc_easy", "chance", 0.2501, none);
        add(m, "arc_easy", "majority", 0.27, none);
        add(m, "hellaswag", "acc", 0.35 - worse / 2, 0.0239);
        add(m, "hellaswag", "acc_norm", 0.42 - worse / 2, 0.0247);
        add(m, "boolq", "acc", m == 1 ? 0.625 : 0.6, 0.0242);  // the others are equal
        add(m, "boolq", "chance", 0.5, none);
        add(m, "boolq", "majority", 0.62, none);
        add(m, "lambada_openai", "acc", 0.3 - worse, 0.0229);
        add(m, "lambada_openai", "perplexity", 25 + 900 * worse, 1.5 + 90 * worse);
        add(m, "wikitext", "word_perplexity", 30 + 100 * worse, 0.4);
        add(m, "wikitext", "byte_perplexity", 1.9 + worse, none);
        add(m, "wikitext", "bits_per_byte", 0.93 + worse, none);
        add(m, "fda", "contains", 0.4 - worse, 0.0245);
        if (m < 2) add(m, "piqa", "acc", 0.6 - worse, 0.0245, 5);
        for (std::int64_t i = 0; i < 6; ++i) {
            const std::int64_t chosen = (i + m) % 2;
            const std::string number = std::to_string(i);
            all.items.push_back({m, "arc_easy", 2048, 0, i, i % 2, chosen, chosen == i % 2,
                                 R"({"requests":[{"context":"Question: )" + number +
                                     R"(?\nAnswer:","continuation":" où","loglikelihood":-2.5,"greedy":false,)"
                                     R"("pieces":[[" o",-1.5],["ù",-1.0]]},{"context":"Question: )" +
                                     number +
                                     R"(?\nAnswer:","continuation":" no","loglikelihood":-3.0,"greedy":true,)"
                                     R"("pieces":[[" no",-3.0]]}]})"});
        }
        all.items.push_back({m, "fda", 2048, 0, 0, -1, -1, m == 0,
                             R"({"prompt":"Name of the device:","generated":" Scope","answers":["scope"]})"});
    }
    return all;
}

inline std::shared_ptr<const store::RunRecord> shared(store::RunRecord run) {
    return std::make_shared<const store::RunRecord>(std::move(run));
}

}  // namespace headscope::test

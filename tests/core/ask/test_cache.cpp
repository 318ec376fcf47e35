// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <numeric>

#include <ATen/TensorOperators.h>

#include "core/ask/cache/cache.h"
#include "core/ask/parts.h"
#include "tests/core/ask/recorded_values.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/recording_probe.h"

using namespace headscope;
using ask::cache::Scorer;
using model::Point;
using test::at_cell;
using test::near;

namespace {

constexpr std::int64_t kWindow = 3, kPool = 3, kSinks = 2;

ask::cache::CacheOptions cache_options(std::vector<Scorer> scorers, std::int64_t context) {
    ask::cache::CacheOptions options;
    options.scorers = std::move(scorers);
    options.ratios = {0.25, 0.5};
    options.scoring = {context, kWindow, kPool, kSinks};
    options.future = 6;
    return options;
}

store::AskRecord cache_of(const test::AskedModel& asked, const ask::cache::CacheOptions& options) {
    store::AskRecord record = asked.record("cache");
    NoProgress progress;
    ask::cache::run_cache(*asked.model, options, record, progress, Cancellation());
    return record;
}

/// Pattern, queries, keys and values of one site of a text, in float64.
struct PlainSite {
    std::int64_t heads = 0, groups = 0, length = 0, size = 0;
    at::Tensor pattern, query, key, value;

    double weight(std::int64_t h, std::int64_t i, std::int64_t j) const { return pattern[h][i][j].item<double>(); }
};

PlainSite plain_site(const test::AskedModel& asked, std::size_t text, std::int64_t site) {
    test::RecordingProbe probe(true, {"query"});
    model::Batch batch;
    batch.ids = asked.ids(text);
    model::ForwardOptions options;
    options.probe = &probe;
    asked.model->forward(batch, options);
    const auto& own =
        *std::find_if(probe.sites.begin(), probe.sites.end(), [&](const auto& one) { return one.site == site; });
    PlainSite plain;
    const std::int64_t layer = asked.model->sites()[static_cast<std::size_t>(site)].layer;
    plain.pattern = recorded_values(asked, asked.texts[text], {Point::pattern}).at({Point::pattern, layer, site})[0];
    plain.query = probe.at("query", layer)[0].to(at::kDouble);
    plain.key = own.key[0].to(at::kDouble);
    plain.value = own.value[0].to(at::kDouble);
    plain.heads = plain.pattern.size(0);
    plain.groups = plain.key.size(0);
    plain.length = plain.pattern.size(1);
    plain.size = plain.key.size(2);
    return plain;
}

std::vector<double> numbers_of(const at::Tensor& row) {
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < row.size(0); ++i) numbers.push_back(row[i].item<double>());
    return numbers;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// kvpress's scores of one key-value head, by their formulas.
std::vector<double> plain_scores(const PlainSite& site, Scorer scorer, std::int64_t g, std::int64_t context,
                                 double ratio) {
    const std::int64_t group = site.heads / site.groups;
    std::vector<double> scores(static_cast<std::size_t>(context), 0);
    const auto at = [&](std::int64_t j) -> double& { return scores[static_cast<std::size_t>(j)]; };
    const auto norm = [](const std::vector<double>& v) { return std::sqrt(dot(v, v)); };
    const auto key = [&](std::int64_t j) { return numbers_of(site.key[g][j]); };
    if (scorer == Scorer::h2o) {
        for (std::int64_t h = g * group; h < (g + 1) * group; ++h)
            for (std::int64_t j = 0; j < context; ++j)
                for (std::int64_t i = j; i < context; ++i)
                    at(j) += site.weight(h, i, j) / static_cast<double>(context - j) / static_cast<double>(group);
    } else if (scorer == Scorer::snapkv) {
        for (std::int64_t h = g * group; h < (g + 1) * group; ++h) {
            std::vector<double> mean(static_cast<std::size_t>(context - kWindow), 0);
            for (std::int64_t j = 0; j < context - kWindow; ++j)
                for (std::int64_t i = context - kWindow; i < context; ++i)
                    mean[static_cast<std::size_t>(j)] += site.weight(h, i, j) / kWindow;
            for (std::int64_t j = 0; j < context - kWindow; ++j)
                for (std::int64_t other = j - kPool / 2; other <= j + kPool / 2; ++other)
                    if (other >= 0 && other < context - kWindow)
                        at(j) += mean[static_cast<std::size_t>(other)] / kPool / static_cast<double>(group);
        }
        for (std::int64_t j = context - kWindow; j < context; ++j) at(j) = 1e9;
    } else if (scorer == Scorer::tova) {
        for (std::int64_t h = 0; h < site.heads; ++h)
            for (std::int64_t j = 0; j < context - 1; ++j)
                at(j) += site.weight(h, context - 1, j) / static_cast<double>(site.heads);
        at(context - 1) = 1e9;
    } else if (scorer == Scorer::streaming_llm) {
        const auto kept = static_cast<std::int64_t>(static_cast<double>(context) * (1 - ratio));
        for (std::int64_t j = 0; j < context; ++j) at(j) = j < kSinks || j >= kSinks + context - kept;
    } else if (scorer == Scorer::key_norm) {
        for (std::int64_t j = 0; j < context; ++j) at(j) = -norm(key(j));
    } else if (scorer == Scorer::key_difference) {
        std::vector<double> anchor(static_cast<std::size_t>(site.size), 0);
        for (std::int64_t j = 0; j < context; ++j) {
            const auto own = key(j);
            for (std::size_t c = 0; c < own.size(); ++c) anchor[c] += own[c] / norm(own) / static_cast<double>(context);
        }
        for (std::int64_t j = 0; j < context; ++j) at(j) = -dot(key(j), anchor) / norm(key(j)) / norm(anchor);
    }
    return scores;
}

std::vector<std::int64_t> largest_of(const std::vector<double>& scores, std::int64_t count) {
    std::vector<std::int64_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
    });
    order.resize(static_cast<std::size_t>(count));
    std::sort(order.begin(), order.end());
    return order;
}

std::vector<std::int64_t> stored_keys(const store::AskRecord& record, Scorer scorer, std::int64_t s, std::int64_t ratio,
                                      std::int64_t site, std::int64_t g) {
    std::vector<std::int64_t> kept;
    for (std::int64_t i = 0; i < record.size_of("/kept"); ++i) {
        const double key =
            at_cell(record, "/cache/" + std::string(ask::cache::name(scorer)) + "/kept", {s, ratio, site, g, i});
        if (key >= 0) kept.push_back(static_cast<std::int64_t>(key));
    }
    return kept;
}

/// ||O' - O|| / ||O|| of a head whose queries behind the context see the kept keys and those from the context on.
double plain_error(const PlainSite& site, std::int64_t head, std::int64_t context,
                   const std::vector<std::int64_t>& kept) {
    const std::int64_t g = head / (site.heads / site.groups);
    double change = 0, whole = 0;
    for (std::int64_t i = context; i < site.length; ++i) {
        double mass = 0;
        const auto stays = [&](std::int64_t j) {
            return j >= context || std::find(kept.begin(), kept.end(), j) != kept.end();
        };
        for (std::int64_t j = 0; j <= i; ++j) mass += stays(j) ? site.weight(head, i, j) : 0;
        for (std::int64_t c = 0; c < site.value.size(2); ++c) {
            double before = 0, after = 0;
            for (std::int64_t j = 0; j <= i; ++j) {
                const double part = site.weight(head, i, j) * site.value[g][j][c].item<double>();
                before += part;
                if (stays(j)) after += part / mass;
            }
            change += (after - before) * (after - before);
            whole += before * before;
        }
    }
    return std::sqrt(change / whole);
}

}  // namespace

TEST_CASE("Kept keys and errors follow the scorers' formulas", "[ask][cache]") {
    const std::vector<Scorer> scorers{Scorer::h2o,           Scorer::snapkv,   Scorer::tova,
                                      Scorer::streaming_llm, Scorer::key_norm, Scorer::key_difference};
    for (const std::string name : {"gpt2", "llama"}) {
        INFO(name);
        const test::AskedModel asked(name);
        const std::int64_t context = std::ssize(asked.texts[0]) - 2;
        REQUIRE(context > 2 * kWindow);
        const ask::cache::CacheOptions options = cache_options(scorers, context);
        const store::AskRecord record = cache_of(asked, options);
        CHECK(record.complete);
        const PlainSite site = plain_site(asked, 1, 1);
        for (const Scorer scorer : scorers) {
            INFO(ask::cache::name(scorer));
            for (std::int64_t r = 0; r < 2; ++r) {
                const double ratio = options.ratios[static_cast<std::size_t>(r)];
                const auto count = static_cast<std::int64_t>(static_cast<double>(context) * (1 - ratio));
                for (std::int64_t g = 0; g < site.groups; ++g) {
                    const auto kept = stored_keys(record, scorer, 1, r, 1, g);
                    CHECK(kept == largest_of(plain_scores(site, scorer, g, context, ratio), count));
                    const std::int64_t head = g * (site.heads / site.groups);
                    CHECK(near(
                        at_cell(record, "/cache/" + std::string(ask::cache::name(scorer)) + "/error", {1, r, 1, head}),
                        plain_error(site, head, context, kept)));
                }
            }
        }
    }
}

TEST_CASE("Expected attention scores keys for turned Gaussian queries", "[ask][cache]") {
    const test::AskedModel asked("llama");
    const std::int64_t context = std::ssize(asked.texts[0]) - 2, rest = context - kSinks;
    const ask::cache::CacheOptions options = cache_options({Scorer::expected_attention}, context);
    const store::AskRecord record = cache_of(asked, options);
    const PlainSite site = plain_site(asked, 0, 1);
    const model::Rotary* rotary = ask::stack_of(*asked.model).tower().rotary_of(1);
    REQUIRE(rotary != nullptr);
    // The mean over later positions of a query q that is turned there is linear in q: R q.
    const auto turned = [&](const at::Tensor& query) {
        at::Tensor sum;
        for (std::int64_t p = context; p < context + options.future; ++p) {
            const at::Tensor row = query.to(at::kFloat).view({1, 1, 1, site.size});
            const at::Tensor one =
                rotary->rotate(row, rotary->table(p, 1, at::kFloat)).view({site.size}).to(at::kDouble);
            sum = sum.defined() ? sum + one : one;
        }
        return sum / static_cast<double>(options.future);
    };
    const std::int64_t group = site.heads / site.groups;
    for (std::int64_t g = 0; g < site.groups; ++g) {
        std::vector<double> scores(static_cast<std::size_t>(context), 1e9);
        for (std::int64_t j = kSinks; j < context; ++j) scores[static_cast<std::size_t>(j)] = 0;
        for (std::int64_t h = g * group; h < (g + 1) * group; ++h) {
            const at::Tensor mean = site.query[h].narrow(0, kSinks, rest).mean(0);
            std::vector<std::vector<double>> centred;
            for (std::int64_t i = kSinks; i < context; ++i)
                centred.push_back(numbers_of(turned(site.query[h][i] - mean)));
            const std::vector<double> center = numbers_of(turned(mean));
            std::vector<double> logits;
            for (std::int64_t j = kSinks; j < context; ++j) {
                const std::vector<double> key = numbers_of(site.key[g][j]);
                double square = 0;
                for (const auto& one : centred) square += dot(one, key) * dot(one, key) / static_cast<double>(rest);
                logits.push_back(dot(key, center) / std::sqrt(static_cast<double>(site.size)) +
                                 square / (2 * static_cast<double>(site.size)));
            }
            const double largest = *std::max_element(logits.begin(), logits.end());
            double sum = 0;
            for (const double one : logits) sum += std::exp(one - largest);
            for (std::int64_t j = kSinks; j < context; ++j)
                scores[static_cast<std::size_t>(j)] +=
                    std::exp(logits[static_cast<std::size_t>(j - kSinks)] - largest) / sum /
                    static_cast<double>(group) * site.value[g][j].norm().item<double>();
        }
        for (std::int64_t r = 0; r < 2; ++r) {
            const auto count = static_cast<std::int64_t>(static_cast<double>(context) *
                                                         (1 - options.ratios[static_cast<std::size_t>(r)]));
            CHECK(stored_keys(record, Scorer::expected_attention, 0, r, 1, g) == largest_of(scores, count));
        }
    }
}

TEST_CASE("Ratios round down in double precision, and ties keep the first keys", "[ask][cache]") {
    CHECK(ask::cache::kept_keys(40, 0.9) == 3);  // 40 * (1 - 0.9) is below 4
    CHECK(ask::cache::kept_keys(40, 0.75) == 10);
    CHECK(ask::cache::kept_keys(3, 0.9) == 1);
    CHECK(ask::cache::kept_keys(7, 0) == 7);
    const at::Tensor scores = at::tensor(std::vector<double>{1, 3, 3, 0, 3}, at::kDouble);
    CHECK(ask::cache::best_keys(scores, 2) == std::vector<std::int64_t>{1, 2});
    CHECK(ask::cache::best_keys(scores, 9).size() == 5);
}

TEST_CASE("Nothing removed leaves the outputs, and the rest of a resumed run is computed", "[ask][cache]") {
    const test::AskedModel asked("llama");
    ask::cache::CacheOptions options = cache_options({Scorer::key_norm}, 6);
    options.ratios = {0};
    for (const double error : cache_of(asked, options).table("/cache/key_norm/error").values)
        CHECK(error == Approx(0).margin(1e-6));
    options.ratios = {0.5};
    const store::AskRecord whole = cache_of(asked, options);
    store::AskRecord begun = asked.record("cache");
    struct Pause final : std::exception {};
    options.saved = [] { throw Pause(); };
    NoProgress progress;
    CHECK_THROWS_AS(ask::cache::run_cache(*asked.model, options, begun, progress, Cancellation()), Pause);
    options.saved = nullptr;
    ask::cache::run_cache(*asked.model, options, begun, progress, Cancellation());
    CHECK(begun.table("/cache/key_norm/error").values == whole.table("/cache/key_norm/error").values);
}

TEST_CASE("Recurrent sites have no numbers, and impossible choices are refused by name", "[ask][cache]") {
    const test::AskedModel hybrid("hybrid-qwen3-next"), gpt2("gpt2"), llama("llama"), bert("bert");
    const store::AskRecord record = cache_of(hybrid, cache_options({Scorer::tova}, 6));
    for (std::int64_t site = 0; site < std::ssize(record.sites); ++site)
        CHECK(std::isnan(at_cell(record, "/cache/tova/error", {0, 0, site, 0})) ==
              !record.sites[static_cast<std::size_t>(site)].has_matrix);
    const auto refused = [](const test::AskedModel& asked, std::vector<Scorer> scorers, std::int64_t context,
                            ErrorCode code, const std::string& part) {
        CHECK_THROWS_MATCHES(cache_of(asked, cache_options(std::move(scorers), context)), Error,
                             test::IsError(code, part));
    };
    refused(gpt2, {Scorer::expected_attention}, 6, ErrorCode::unsupported, "to have rotary positions");
    refused(bert, {Scorer::tova}, 6, ErrorCode::usage, "expected a decoder");
    refused(llama, {Scorer::snapkv}, kWindow, ErrorCode::usage, "a context of more than 3 tokens");
    refused(llama, {Scorer::snapkv}, 5, ErrorCode::usage, "ratios that keep 3 keys or more; found 2 of 5");
    refused(llama, {Scorer::tova}, 4000, ErrorCode::usage, "--context");
    refused(llama, {}, 6, ErrorCode::usage, "--scorers");
}

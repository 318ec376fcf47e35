// SPDX-License-Identifier: GPL-3.0-or-later
// attend(): LibTorch's attention, the fused operator and the dense one say the same wherever each is chosen.
#include "tests/catch_with_torch.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>

#include "core/mixers/shared/attend.h"
#include "core/mixers/shared/key_value_cache.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using test::largest_difference;
using test::RecordingProbe;

namespace {

at::Tensor noise(std::vector<std::int64_t> shape, std::uint64_t seed) {
    return at::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed));
}

struct Case {
    const char* name;
    std::int64_t batch, heads, groups, queries, keys;
    kernels::ScoreRule rule;
};

std::vector<Case> cases() {
    std::vector<Case> list;
    const auto add = [&](const char* name, std::int64_t queries, std::int64_t keys, auto&& change) {
        kernels::ScoreRule rule;
        rule.scale = 0.3;
        change(rule);
        list.push_back({name, 2, 6, 2, queries, keys, rule});
    };
    add("causal", 65, 65, [](auto&) {});
    add("one token", 1, 1, [](auto&) {});
    add("one token after others", 1, 64, [](auto& r) { r.query_offset = 63; });
    add("some tokens after others", 5, 64, [](auto& r) { r.query_offset = 59; });
    add("bidirectional", 63, 63, [](auto& r) { r.causal = false; });
    add("bidirectional, padded", 33, 33, [](auto& r) {
        r.causal = false;
        r.key_length = r.query_length = {33, 20};
    });
    add("causal, padded", 33, 33, [](auto& r) { r.key_length = r.query_length = {33, 20}; });
    add("window", 40, 40, [](auto& r) { r.window_left = 7; });
    add("window as long as the text", 40, 40, [](auto& r) { r.window_left = 39; });
    add("soft cap", 40, 40, [](auto& r) { r.soft_cap = 2; });
    add("slopes", 40, 40, [](auto& r) { r.slopes = {0.5F, 0.25F, 0.125F, 0.1F, 0.05F, 0.01F}; });
    add("sink logits", 40, 40, [](auto& r) { r.sink_logits = {0, 1, 2, -1, -2, 0.5F}; });
    const auto pieces = [](kernels::ScoreRule& rule, std::int64_t size, std::int64_t keys) {
        const std::int64_t count = (keys + size - 1) / size;
        rule.blocks = {size, count, std::vector<std::uint8_t>(static_cast<std::size_t>(2 * 6 * count))};
    };
    add("pieces", 40, 40, [&](auto& r) { pieces(r, 7, 40); });
    add("pieces, padded", 40, 40, [&](auto& r) {
        pieces(r, 16, 40);
        r.key_length = r.query_length = {40, 33};
    });
    add("pieces, some tokens after others", 5, 64, [&](auto& r) {
        pieces(r, 9, 64);
        r.query_offset = 59;
    });
    add("pieces that some heads see", 40, 40, [&](auto& r) {
        pieces(r, 8, 40);
        for (std::size_t n = 0; n < r.blocks.visible.size(); n += 3) r.blocks.visible[n] = 1;
    });
    add("cross", 7, 30, [](auto& r) { r.causal = false; });
    return list;
}

/// The real rows of [B, L, n].
void check_rows(const at::Tensor& found, const at::Tensor& expected, const Case& c, double error) {
    INFO(c.name);
    CHECK(largest_difference(found, expected, c.rule.query_length) < error * test::largest_value(expected));
}

}  // namespace

TEST_CASE("Every way of computing attention gives the same", "[model][mixers]") {
    for (const Case& c : cases()) {
        const at::Tensor q = noise({c.batch, c.queries, c.heads, 16}, 1).transpose(1, 2);
        const at::Tensor k = noise({c.batch, c.keys, c.groups, 16}, 2).transpose(1, 2);
        const at::Tensor v = noise({c.batch, c.keys, c.groups, 16}, 3).transpose(1, 2);
        const at::Tensor expected =
            mixers::dense_attention(q.to(at::kDouble), k.to(at::kDouble), v.to(at::kDouble), c.rule)
                .transpose(1, 2)
                .flatten(2);
        mixers::StackContext context;
        check_rows(mixers::attend(q, k, v, c.rule, SiteIndex(0), context), expected, c, test::kFloatError);
        check_rows(
            mixers::attend(q.to(at::kDouble), k.to(at::kDouble), v.to(at::kDouble), c.rule, SiteIndex(0), context),
            expected, c, 1e-12);
        check_rows(mixers::attend(q.to(at::kBFloat16), k.to(at::kBFloat16), v.to(at::kBFloat16), c.rule, SiteIndex(0),
                                  context),
                   expected, c, test::kBfloatError);

        RecordingProbe probe(true);
        const std::vector<Site> sites(1);
        context.sites = &sites;
        context.probe = &probe;
        check_rows(mixers::attend(q, k, v, c.rule, SiteIndex(0), context), expected, c, test::kFloatError);
        REQUIRE(probe.sites.size() == 1);
        const std::vector<std::int64_t> shape{c.batch, c.heads, c.queries, 16};
        CHECK(probe.sites[0].output.sizes() == shape);
    }
}

TEST_CASE("Value size may differ from key size", "[model][mixers]") {
    const at::Tensor q = noise({1, 4, 9, 8}, 1), k = noise({1, 2, 9, 8}, 2), v = noise({1, 2, 9, 12}, 3);
    kernels::ScoreRule rule;
    const at::Tensor expected = mixers::dense_attention(q, k, v, rule).transpose(1, 2).flatten(2);
    REQUIRE(expected.size(2) == 48);
    CHECK(largest_difference(mixers::attend(q, k, v, rule, SiteIndex(0), {}), expected) < test::kFloatError * 4);
}

TEST_CASE("Autograd passes through without a probe", "[model][mixers]") {
    at::Tensor q = noise({1, 2, 5, 4}, 1).set_requires_grad(true);
    const at::Tensor k = noise({1, 2, 5, 4}, 2), v = noise({1, 2, 5, 4}, 3);
    kernels::ScoreRule rule;
    for (const double cap : {0.0, 3.0}) {
        rule.soft_cap = cap;
        const at::Tensor out = mixers::attend(q, k, v, rule, SiteIndex(0), {});
        REQUIRE(out.requires_grad());
    }
}

TEST_CASE("Cancelling stops attention", "[model][mixers]") {
    Cancellation cancellation;
    cancellation.request();
    mixers::StackContext context;
    context.cancellation = &cancellation;
    const at::Tensor x = noise({1, 2, 5, 4}, 1);
    CHECK_THROWS_AS(mixers::attend(x, x, x, {}, SiteIndex(0), context), Stopped);
}

TEST_CASE("A key-value cache holds what it was given, however it grew", "[model][mixers]") {
    mixers::KeyValueCache cache;
    CHECK(cache.bytes() == 0);
    CHECK(cache.clone()->bytes() == 0);
    std::vector<at::Tensor> keys;
    for (const std::int64_t count : {1, 62, 1, 1, 200}) {
        keys.push_back(noise({2, 3, count, 4}, static_cast<std::uint64_t>(count)));
        cache.append(keys.back(), keys.back() + 1);
        CHECK(cache.key().equal(at::cat(keys, 2)));
        CHECK(cache.value().equal(at::cat(keys, 2) + 1));
    }
    CHECK(cache.bytes() >= 2 * 265 * 2 * 3 * 4 * 4);
    const auto copy = cache.clone();
    cache.append(keys[0], keys[0]);
    CHECK(dynamic_cast<mixers::KeyValueCache&>(*copy).key().equal(at::cat(keys, 2)));
}

TEST_CASE("Unknown mixers are named beside the known ones", "[model][mixers]") {
    CHECK_THROWS_MATCHES(mixers::make_mixer("fourier", {}, 0), Error,
                         test::IsError(ErrorCode::unsupported, "standard"));
    CHECK(mixers::known_names().front() == "standard");
}

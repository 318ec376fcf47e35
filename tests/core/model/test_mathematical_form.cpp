// SPDX-License-Identifier: GPL-3.0-or-later
// The mixers that change the mathematical form: every option of `approximate`, and what both keep instead of keys.
#include "tests/catch_with_torch.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/base/process/machine.h"
#include "core/mixers/shared/attend.h"
#include "core/mixers/shared/block_attention.h"
#include "core/mixers/shared/running_attention.h"
#include "core/mixers/shared/tensor_views.h"
#include "core/model/towers/cache.h"
#include "kernels/reference/attention.h"
#include "kernels/taylor_state.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/native_model.h"
#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using kernels::Normaliser;
using model::Trainable;
using test::largest_difference;
using test::largest_value;
using test::native_config;
using test::some_tokens;

namespace {

const std::vector<std::pair<const char*, const char*>> kOptions{
    {"full", "joint"}, {"full", "per_order"}, {"diagonal", "joint"}, {"diagonal", "per_order"}};
constexpr Normaliser kRules[] = {Normaliser::taylor, Normaliser::taylor_per_order, Normaliser::taylor_diagonal,
                                 Normaliser::taylor_diagonal_per_order};

nlohmann::json with_options(const std::vector<std::string>& layers, const char* second_order, const char* normalisation,
                            nlohmann::json more = nlohmann::json::object()) {
    more["mixers"] = {{"approximate", {{"second_order", second_order}, {"normalisation", normalisation}}}};
    return native_config(layers, more);
}

at::Tensor noise(std::vector<std::int64_t> shape, std::uint64_t seed) {
    return at::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed));
}

/// Queries and keys of one sign, so that no denominator comes near 0 by any rule.
struct Inputs {
    at::Tensor query, key, value;
    Inputs(std::int64_t length, std::int64_t heads, std::int64_t groups, std::int64_t size)
        : query(noise({2, heads, length, size}, 1).abs() * 0.5),
          key(noise({2, groups, length, size}, 2).abs() * 0.5),
          value(noise({2, groups, length, size + 3}, 3)) {}
    std::vector<at::Tensor> leaves(at::ScalarType type) const {
        std::vector<at::Tensor> all{query.to(type), key.to(type), value.to(type)};
        for (at::Tensor& one : all) one = one.detach().clone().requires_grad_(true);
        return all;
    }
};

/// Output and gradients of a function of query, key and value under one fixed d loss / d O.
template <class F>
std::vector<at::Tensor> differentiated(const std::vector<at::Tensor>& leaves, const F& function) {
    const at::Tensor output = function(leaves[0], leaves[1], leaves[2]);
    const at::Tensor outer = noise(output.sizes().vec(), 4).to(output.scalar_type());
    std::vector<at::Tensor> all = torch::autograd::grad({output}, leaves, {outer});
    all.push_back(output.detach());
    return all;
}

void check_close(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected, double tolerance) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t n = 0; n < found.size(); ++n) {
        INFO("part " << n);
        CHECK(largest_difference(found[n].to(at::kDouble), expected[n].to(at::kDouble)) <
              tolerance * std::max(1.0, largest_value(expected[n].to(at::kDouble))));
    }
}

}  // namespace

TEST_CASE("Every option of `approximate` is what the oracle says", "[native][golden][approximate]") {
    for (const char* name : {"native-approximate", "native-approximate-full-per-order",
                             "native-approximate-diagonal-joint", "native-approximate-diagonal-per-order"}) {
        INFO(name);
        const test::GoldenModel golden = test::golden_model(name);
        const auto model = golden.checkpoint.build(checkpoint::LoadAs::float64);
        const at::Tensor hidden = model->forward(golden.batch);
        const at::Tensor logits = model->logits(hidden.flatten(0, 1)).unflatten(0, {hidden.size(0), hidden.size(1)});
        CHECK(largest_difference(logits, golden.logits) < test::kFloatError * largest_value(golden.logits));
    }
}

TEST_CASE("Decoding by any option is the whole text, in float64 to its digits", "[native][decoding][approximate]") {
    for (const auto& [second_order, normalisation] : kOptions) {
        for (const char* other : {"approximate", "non_approximate"}) {
            INFO(second_order << ", " << normalisation << ", with " << other);
            const auto config = with_options({"approximate", other}, second_order, normalisation,
                                             {{"num_key_value_heads", 1}, {"qk_norm", true}});
            const auto trainable = Trainable::create(config.dump(), 5, at::kDouble);
            model::Model& model = trainable->model();
            const at::Tensor ids = some_tokens(2, 150).ids;
            const at::Tensor whole = model.forward({ids, {}, {}});
            const auto cache = model.new_cache();
            model::ForwardOptions options;
            options.cache = cache.get();
            std::int64_t done = 0;
            for (const std::int64_t count : {1, 70, 1, 1, 64, 13}) {
                const at::Tensor part = model.forward({ids.narrow(1, done, count), {}, {}}, options);
                // Denominators that come near 0 cost digits.
                CHECK(largest_difference(part, whole.narrow(1, done, count)) < 1e-8 * largest_value(whole));
                done += count;
            }
            REQUIRE(done == 150);
        }
    }
}

TEST_CASE("Gradients of every option agree with finite differences", "[native][gradients][approximate]") {
    for (const auto& [second_order, normalisation] : kOptions) {
        INFO(second_order << ", " << normalisation);
        const auto config = with_options({"approximate", "standard"}, second_order, normalisation);
        const auto model = Trainable::create(config.dump(), 1, at::kDouble);
        const model::Batch batch = some_tokens(2, 6);
        test::next_token_loss(*model, batch).backward();
        at::Tensor weights = model->weights();
        for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
            const std::string full = std::string("model.layers.0.self_attn.") + name + ".weight";
            const std::int64_t i = test::find_parameter(*model, full)->value.storage_offset() + 7;
            INFO(full);
            const double here = weights[i].item<double>(), step = 1e-6;
            weights[i] = here + step;
            const double above = test::next_token_loss(*model, batch).item<double>();
            weights[i] = here - step;
            const double below = test::next_token_loss(*model, batch).item<double>();
            weights[i] = here;
            CHECK(model->gradients()[i].item<double>() ==
                  Approx((above - below) / (2 * step)).epsilon(1e-4).margin(1e-8));
        }
    }
}

TEST_CASE("Recorded in float32 and bfloat16, every rule has the gradients of LibTorch on the matrix",
          "[gradients][approximate]") {
    for (const Normaliser rule_name : kRules) {
        for (const std::int64_t length : {1, 2, 63, 64, 65, 130}) {
            const Inputs inputs(length, 6, 2, 20);
            kernels::ScoreRule rule;
            rule.scale = 1 / std::sqrt(20.0);
            rule.normaliser = rule_name;
            if (length == 65) rule.query_length = rule.key_length = {65, 40};
            const auto attended = [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
                mixers::StackContext context;
                const at::Tensor all = mixers::attend(q, k, v, rule, SiteIndex{0}, context);
                // Rows of padding mean nothing.
                return rule.query_length.empty() ? all : all.narrow(1, 0, 40);
            };
            const auto exact = differentiated(inputs.leaves(at::kDouble), attended);
            INFO(static_cast<int>(rule_name) << ", length " << length);
            check_close(differentiated(inputs.leaves(at::kFloat), attended), exact, 1e-5);
            if (length == 64) check_close(differentiated(inputs.leaves(at::kBFloat16), attended), exact, 3e-2);
        }
    }
}

TEST_CASE("Recorded in float32 and bfloat16, one score per key has the gradients of LibTorch on the matrix",
          "[gradients][non_approximate]") {
    for (const std::int64_t length : {1, 2, 63, 64, 65, 300}) {
        const Inputs inputs(length, 6, 2, 20);
        const std::vector<std::int64_t> lengths{length, (length + 1) / 2};
        for (const auto* padding : {static_cast<const std::vector<std::int64_t>*>(nullptr), &lengths}) {
            const auto trained = [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
                const at::Tensor all = mixers::RunningCall{q, k, v, 0.7, padding, nullptr}.train();
                return padding ? all.narrow(1, 0, (length + 1) / 2) : all;
            };
            INFO("length " << length);
            const auto exact = differentiated(inputs.leaves(at::kDouble), trained);
            check_close(differentiated(inputs.leaves(at::kFloat), trained), exact, 1e-5);
            if (length == 64) check_close(differentiated(inputs.leaves(at::kBFloat16), trained), exact, 3e-2);
        }
    }
}

TEST_CASE("Training keeps no L x L tensor", "[gradients][memory]") {
    const std::int64_t length = 4096, matrix = length * length * 4;
    for (const Normaliser rule_name : {Normaliser::taylor, Normaliser::taylor_diagonal_per_order}) {
        kernels::ScoreRule rule;
        rule.scale = 0.5;
        rule.normaliser = rule_name;
        std::vector<at::Tensor> leaves;
        for (int n = 0; n < 3; ++n) leaves.push_back(noise({1, 1, length, 4}, 5).abs().requires_grad_(true));
        const double before = peak_memory();
        mixers::StackContext context;
        const at::Tensor output = mixers::attend(leaves[0], leaves[1], leaves[2], rule, SiteIndex{0}, context);
        torch::autograd::grad({output.sum()}, leaves);
        INFO(static_cast<int>(rule_name));
        CHECK(peak_memory() - before < static_cast<double>(matrix / 2));
    }
}

TEST_CASE("States have the sizes of the papers' tables, whatever the length", "[native][decoding]") {
    for (const char* mixer : {"approximate", "non_approximate"}) {
        for (const char* second_order : {"full", "diagonal"}) {
            const auto config = with_options({mixer}, second_order, "joint");
            const auto trainable = Trainable::create(config.dump(), 5, at::kFloat);
            model::Model& model = trainable->model();
            const auto cache = model.new_cache();
            CHECK(cache->bytes() == 0);
            model::ForwardOptions options;
            options.cache = cache.get();
            // 3 heads of 4 numbers; two sequences.
            const std::int64_t features = std::string(second_order) == "full" ? 1 + 4 + 4 * 5 / 2 : 1 + 2 * 4;
            const std::int64_t expected =
                2 * 3 * 4 * (std::string(mixer) == "approximate" ? features * (4 + 1) : 4 + 2);
            for (const std::int64_t count : {5, 1, 100}) {
                model.forward({some_tokens(2, count).ids, {}, {}}, options);
                CHECK(cache->bytes() == expected);
            }
        }
    }
}

TEST_CASE("One score per key is measured without a matrix as the matrix would be", "[native][probe][non_approximate]") {
    for (const std::int64_t groups : {3, 1}) {
        const auto config = native_config({"non_approximate", "approximate"}, {{"num_key_value_heads", groups}});
        const auto trainable = Trainable::create(config.dump(), 5, at::kFloat);
        const model::Batch batch{some_tokens(2, 70).ids, {70, 31}, {}};
        test::RecordingProbe probe(true, {"query", "key", "value"});
        model::ForwardOptions options;
        options.probe = &probe;
        trainable->model().forward(batch, options);
        REQUIRE(probe.sites.size() == 2);
        for (const auto& site : probe.sites) {
            INFO("groups " << groups << ", site " << site.site);
            CHECK(site.description.key_value_heads == groups);
            CHECK(site.description.key_size == site.key.size(3));
            CHECK(site.key.size(1) == groups);
            const at::Tensor query = site.query.contiguous(), key = site.key.contiguous();
            const at::Tensor value = site.value.contiguous();
            const kernels::AttentionInput input{mixers::view_of(query), mixers::view_of(key), mixers::view_of(value),
                                                &site.rule, nullptr};
            const kernels::StatisticsRequest request;
            kernels::Statistics expected;
            const at::Tensor output = at::full({2, 3, 70, 4}, 0.0, at::kFloat);
            kernels::attention_reference(input, {output.mutable_data_ptr<float>(), 3 * 70 * 4, 70 * 4, 4}, &request,
                                         &expected);
            const auto close = [](const auto& found, const auto& wanted, double tolerance) {
                REQUIRE(found.size() == wanted.size());
                for (std::size_t n = 0; n < found.size(); ++n) {
                    const bool both_undefined = std::isnan(double(found[n])) && std::isnan(double(wanted[n]));
                    if (both_undefined || found[n] == wanted[n]) continue;
                    CHECK(double(found[n]) == Approx(double(wanted[n])).epsilon(tolerance).margin(tolerance));
                }
            };
            const auto& s = site.statistics;
            close(s.entropy, expected.entropy, 1e-5);
            close(s.concentration, expected.concentration, 1e-5);
            close(s.sink, expected.sink, 1e-5);
            close(s.local_focus, expected.local_focus, 1e-5);
            close(s.head_diversity, expected.head_diversity, 1e-5);
            close(s.mean_distance, expected.mean_distance, 1e-5);
            close(s.column_mass, expected.column_mass, 1e-5);
            close(s.thumbnail_mean, expected.thumbnail_mean, 1e-5);
            close(s.row_constant, expected.row_constant, 1e-5);
            close(s.score_variance, expected.score_variance, 1e-5);
            CHECK(largest_difference(site.output.narrow(2, 0, 31), output.narrow(2, 0, 31)) <
                  test::kFloatError * largest_value(output));
        }
    }
}

TEST_CASE("What a state cannot do is refused", "[native][errors]") {
    for (const char* mixer : {"approximate", "non_approximate"}) {
        INFO(mixer);
        const auto trainable = Trainable::create(native_config({mixer}).dump(), 5, at::kFloat);
        model::Model& model = trainable->model();
        const auto cache = model.new_cache();
        test::RecordingProbe probe(true);
        model::ForwardOptions options;
        options.cache = cache.get();
        options.probe = &probe;
        CHECK_THROWS_MATCHES(model.forward({some_tokens(1, 3).ids, {}, {}}, options), Error,
                             test::IsError(ErrorCode::unsupported, "measured whole"));
    }
    const auto turned = native_config(
        {"approximate"}, {{"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2.0}}}, {"qk_norm", true}});
    const auto trainable = Trainable::create(turned.dump(), 5, at::kFloat);
    model::Model& model = trainable->model();
    CHECK_NOTHROW(model.forward({some_tokens(1, 3).ids, {}, {}}));
    const auto cache = model.new_cache();
    model::ForwardOptions options;
    options.cache = cache.get();
    CHECK_THROWS_MATCHES(model.forward({some_tokens(1, 3).ids, {}, {}}, options), Error,
                         test::IsError(ErrorCode::unsupported, "angles do not depend"));
}

// SPDX-License-Identifier: GPL-3.0-or-later
// torch.ops.headscope.attention through torch's dispatcher: every option arrives, every statistic comes back.
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <map>
#include "tests/catch_with_torch.h"

#include "kernels/attention.h"
#include "kernels/normaliser.h"
#include "tests/kernels/golden_case.h"

using namespace headscope::kernels;
using headscope::kernels::testing::fields_of;
using headscope::kernels::testing::GoldenCase;
using headscope::kernels::testing::load_golden;

namespace {

using Options = std::map<std::string, c10::IValue>;
using Dictionary = c10::Dict<std::string, at::Tensor>;

struct Result {
    at::Tensor output;
    Dictionary statistics;
};

/// Calls the operator as Python does: positional tensors, options by name, defaults from the schema.
Result call(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Options& options) {
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("headscope::attention", "");
    torch::jit::Stack stack;
    std::size_t used = 0;
    for (const c10::Argument& argument : op.schema().arguments()) {
        if (argument.name() == "query")
            stack.emplace_back(q);
        else if (argument.name() == "key")
            stack.emplace_back(k);
        else if (argument.name() == "value")
            stack.emplace_back(v);
        else if (const auto found = options.find(argument.name()); found != options.end()) {
            stack.push_back(found->second);
            ++used;
        } else {
            REQUIRE(argument.default_value().has_value());
            stack.push_back(*argument.default_value());
        }
    }
    REQUIRE(used == options.size());
    op.callBoxed(stack);
    REQUIRE(stack.size() == 2);
    return {stack[0].toTensor(), c10::impl::toTypedDict<std::string, at::Tensor>(stack[1].toGenericDict())};
}

at::Tensor tensor_of(const TensorView& view) {
    return at::from_blob(const_cast<void*>(view.data), {view.batch, view.heads, view.length, view.size},
                         view.type == ElementType::float32 ? at::kFloat : at::kBFloat16);
}

template <typename Value>
at::Tensor copy(const std::vector<Value>& values, at::IntArrayRef shape) {
    return at::tensor(at::ArrayRef<Value>(values)).view(shape);
}

Options options_of(const GoldenCase& c) {
    const ScoreRule& rule = c.rule;
    const std::int64_t batch = c.query.batch, heads = c.query.heads;
    Options options{{"scale", rule.scale},
                    {"soft_cap", rule.soft_cap},
                    {"causal", rule.causal},
                    {"query_offset", rule.query_offset},
                    {"window_left", rule.window_left},
                    {"window_right", rule.window_right},
                    {"first_keys", rule.first_keys},
                    {"bias_origin", rule.bias_origin},
                    {"statistics", true},
                    {"per_query", true},
                    {"local_distances", c.request.local_distances},
                    {"thumbnail_size", c.request.thumbnail_size},
                    {"histogram_row_step", c.request.histogram_row_step},
                    {"beyond_table", rule.beyond_table == BeyondTable::zero ? "zero" : "clamp"},
                    {"normaliser", normaliser_name(rule.normaliser)}};
    if (!rule.slopes.empty()) options["slopes"] = copy(rule.slopes, {heads});
    if (!rule.sink_logits.empty()) options["sink_logits"] = copy(rule.sink_logits, {heads});
    if (!rule.offsets.empty()) options["offsets"] = copy(rule.offsets, {heads});
    options["offset_form"] = rule.offset_form == OffsetForm::constant ? "constant" : "per_length";
    if (rule.bias_length > 0) options["distance_bias"] = copy(rule.distance_bias, {heads, rule.bias_length});
    if (!rule.query_length.empty()) options["query_length"] = copy(rule.query_length, {batch});
    if (!rule.key_begin.empty()) options["key_begin"] = copy(rule.key_begin, {batch});
    if (!rule.key_length.empty()) options["key_length"] = copy(rule.key_length, {batch});
    if (!c.request.tokens.empty()) options["tokens"] = copy(c.request.tokens, {batch, c.key.length});
    // Not said, cross-attention is known by its unequal numbers of queries and keys.
    if (c.request.cross && c.query.length == c.key.length) options["cross"] = true;
    if (rule.blocks.block_size > 0) {
        options["block_size"] = rule.blocks.block_size;
        options["block_visible"] = copy(rule.blocks.visible, {batch, heads, rule.blocks.blocks}).to(at::kBool);
    }
    return options;
}

bool same(double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b));
}

}  // namespace

TEST_CASE("the torch operator passes on every option and gives back every statistic", "[torch]") {
    for (const GoldenCase& c : load_golden().cases) {
        INFO("case: " << c.name);
        const Result found = call(tensor_of(c.query), tensor_of(c.key), tensor_of(c.value), options_of(c));
        const std::int64_t head = c.query.length * c.value_size;
        std::vector<float> output(static_cast<std::size_t>(c.query.batch * c.query.heads * head));
        StatisticsRequest request = c.request;
        request.per_query = true;
        Statistics statistics;
        attention(c.input(), {output.data(), c.query.heads * head, head, c.value_size}, &request, &statistics);
        CHECK(found.output.scalar_type() == (c.query.type == ElementType::float32 ? at::kFloat : at::kBFloat16));
        const at::Tensor direct = at::from_blob(output.data(), found.output.sizes(), at::kFloat);
        CHECK(found.output.equal(direct.to(found.output.scalar_type())));
        for (const auto& [name, values] : fields_of(statistics)) {
            INFO("field: " << name);
            const bool absent = (name == "virtual_sink" && c.rule.sink_logits.empty()) ||
                                ((name == "duplicate" || name == "induction") && c.request.tokens.empty());
            REQUIRE(found.statistics.contains(name) == !absent);
            if (absent) continue;
            const at::Tensor flat = found.statistics.at(name).to(at::kDouble).contiguous();
            REQUIRE(flat.numel() == static_cast<std::int64_t>(values.size()));
            for (std::size_t n = 0; n < values.size(); ++n) {
                INFO("element " << n << ": " << flat.const_data_ptr<double>()[n] << ", directly " << values[n]);
                REQUIRE(same(flat.const_data_ptr<double>()[n], values[n]));
            }
        }
    }
}

TEST_CASE("The torch operator scales by the root of the size by default, and measures on request", "[torch]") {
    const auto golden = load_golden();
    const GoldenCase& c = golden.cases.at(1);
    const at::Tensor q = tensor_of(c.query), k = tensor_of(c.key), v = tensor_of(c.value);
    const Result found = call(q, k, v, {});
    CHECK(found.statistics.empty());
    CHECK(found.output.equal(call(q, k, v, {{"scale", 1.0 / std::sqrt(6.0)}}).output));
    CHECK_FALSE(found.output.equal(call(q, k, v, {{"scale", 1.0}}).output));
}

TEST_CASE("the torch operator takes tensors of any strides", "[torch]") {
    const auto golden = load_golden();
    const GoldenCase& c = golden.cases.at(1);
    const at::Tensor q = tensor_of(c.query), k = tensor_of(c.key), v = tensor_of(c.value);
    const auto rows_first = [](const at::Tensor& t) { return t.transpose(1, 2).contiguous().transpose(1, 2); };
    const auto size_first = [](const at::Tensor& t) { return t.transpose(2, 3).contiguous().transpose(2, 3); };
    const at::Tensor expected = call(q, k, v, {}).output;
    CHECK(call(rows_first(q), rows_first(k), rows_first(v), {}).output.equal(expected));
    CHECK(call(size_first(q), size_first(k), size_first(v), {}).output.equal(expected));
}

TEST_CASE("On Meta the torch operator has the shapes and types of the CPU", "[torch]") {
    for (const GoldenCase& c : load_golden().cases) {
        INFO("case: " << c.name);
        const at::Tensor q = tensor_of(c.query), k = tensor_of(c.key), v = tensor_of(c.value);
        const Options options = options_of(c);
        const Result real = call(q, k, v, options);
        const Result meta = call(q.to(at::kMeta), k.to(at::kMeta), v.to(at::kMeta), options);
        CHECK(meta.output.is_meta());
        CHECK(meta.output.sizes() == real.output.sizes());
        CHECK(meta.output.scalar_type() == real.output.scalar_type());
        REQUIRE(meta.statistics.size() == real.statistics.size());
        for (const auto& entry : real.statistics) {
            INFO("field: " << entry.key());
            CHECK(meta.statistics.at(entry.key()).is_meta());
            CHECK(meta.statistics.at(entry.key()).sizes() == entry.value().sizes());
            CHECK(meta.statistics.at(entry.key()).scalar_type() == entry.value().scalar_type());
        }
    }
}

TEST_CASE("the torch operator gives autograd what the training passes give", "[torch]") {
    const auto golden = load_golden();
    const GoldenCase& c = golden.cases.at(1);
    const auto leaf = [](const TensorView& from) { return tensor_of(from).clone().set_requires_grad(true); };
    for (const char* normaliser : {"softmax", "sparsemax", "taylor", "entmax"}) {
        INFO(normaliser);
        const at::Tensor q = leaf(c.query), k = leaf(c.key), v = leaf(c.value);
        for (const bool statistics : {false, true}) {
            const Result found = call(q, k, v, {{"statistics", statistics}, {"normaliser", normaliser}});
            CHECK(found.output.requires_grad());
            const Result plain = call(q.detach(), k.detach(), v.detach(), {{"normaliser", normaliser}});
            CHECK(found.output.detach().equal(plain.output));
            CHECK(found.statistics.empty() != statistics);
            found.output.sum().backward();
        }
        // With a loss of sum(O) the gradients of the values of a head add up to the number of rows.
        CHECK(v.grad().sum().item<double>() == Approx(2.0 * static_cast<double>(call(q, k, v, {}).output.numel())));
        CHECK(q.grad().sizes() == q.sizes());
        CHECK(k.grad().sizes() == k.sizes());
    }
}

TEST_CASE("where a gradient is wanted the torch operator says what it has none for", "[torch][errors]") {
    const at::Tensor q = at::zeros({1, 1, 3, 2}, at::kFloat), k = q.clone(), v = q.clone().set_requires_grad(true);
    CHECK_THROWS_WITH(
        call(q, k, v, {{"normaliser", "taylor_diagonal"}}),
        Catch::Contains("expected softmax, sparsemax, taylor, elastic, entmax or sigmoid where a gradient is wanted"));
    const at::Tensor slopes = at::zeros({1}).set_requires_grad(true);
    CHECK_THROWS_WITH(call(q, k, k, {{"slopes", slopes}}), Catch::Contains("[slopes]"));
    const at::NoGradGuard no_gradient;
    CHECK_NOTHROW(call(q, k, v, {{"normaliser", "taylor_diagonal"}}));
    CHECK_NOTHROW(call(q, k, v, {{"slopes", slopes}}));
}

TEST_CASE("the torch operator refuses what does not fit together", "[torch][errors]") {
    const at::Tensor q = at::zeros({1, 4, 3, 2}, at::kFloat), k = at::zeros({1, 2, 5, 2}, at::kFloat);
    CHECK_NOTHROW(call(q, k, k, {}));
    for (const auto device : {at::kCPU, at::kMeta}) {
        const at::Tensor query = q.to(device), key = k.to(device);
        CHECK_THROWS_WITH(call(query.to(at::kDouble), key, key, {}), Catch::Contains("[query]"));
        CHECK_THROWS_WITH(call(query.squeeze(0), key, key, {}), Catch::Contains("[query]"));
        CHECK_THROWS_WITH(call(query, key.narrow(1, 0, 0), key, {}), Catch::Contains("[key]"));
        CHECK_THROWS_WITH(call(query.narrow(1, 0, 3), key, key, {}), Catch::Contains("[key]"));
        CHECK_THROWS_WITH(call(query, key, key.narrow(2, 0, 4), {}), Catch::Contains("[value]"));
    }
    CHECK_THROWS_WITH(call(q, k, k, {{"normaliser", "hardmax"}}), Catch::Contains("entmax or sigmoid; found hardmax"));
    CHECK_THROWS_WITH(call(q, k, k, {{"slopes", at::zeros({3})}}), Catch::Contains("[slopes]"));
    CHECK_THROWS_WITH(call(q, k, k, {{"distance_bias", at::zeros({4})}}), Catch::Contains("[distance_bias]"));
    CHECK_THROWS_WITH(call(q, k, k, {{"block_size", 2}}), Catch::Contains("[block_size]"));
    CHECK_THROWS_WITH(call(q, k, k, {{"statistics", true}, {"tokens", at::zeros({1, 4}, at::kInt)}}),
                      Catch::Contains("[tokens]"));
    CHECK_THROWS_WITH(call(q.narrow(2, 0, 0), k, k, {}), Catch::Contains("[query]"));
}

// SPDX-License-Identifier: GPL-3.0-or-later
// torch.ops.headscope: kernels::attention for Python and for torch's dispatcher. docs/operator.md explains
// every argument and result. Boxed kernels read their arguments by the names of the schema, so that the schema is the
// only list of them. This file alone includes torch/library.h.
#ifndef AT_PER_OPERATOR_HEADERS
#define AT_PER_OPERATOR_HEADERS
#endif
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "kernels/attention.h"
#include "kernels/backend.h"
#include "kernels/normaliser.h"
#include "kernels/parallel.h"
#include "kernels/score_rule.h"

namespace headscope::kernels {
namespace {

constexpr const char* kSchema =
    "attention(Tensor query, Tensor key, Tensor value, *, float? scale=None, bool causal=True, int query_offset=0, "
    "int window_left=-1, int window_right=-1, int first_keys=0, Tensor? slopes=None, Tensor? distance_bias=None, "
    "int bias_origin=0, str beyond_table=\"clamp\", float soft_cap=0.0, Tensor? sink_logits=None, "
    "Tensor? block_visible=None, int block_size=0, Tensor? query_length=None, Tensor? key_begin=None, "
    "Tensor? key_length=None, str normaliser=\"softmax\", bool statistics=False, int[] local_distances=[0, 1, 2, 3], "
    "bool histogram=True, int histogram_row_step=0, bool head_diversity=True, bool column_mass=True, "
    "bool thumbnails=True, int thumbnail_size=128, bool per_query=False, Tensor? tokens=None, "
    "bool? cross=None) "
    "-> (Tensor output, Dict(str, Tensor) statistics)";

/// The arguments of one call on the dispatcher's stack, by name.
class Arguments {
public:
    Arguments(const c10::OperatorHandle& op, const torch::jit::Stack& stack)
        : schema_(op.schema()), first_(stack.size() - schema_.arguments().size()), stack_(stack) {}

    const c10::IValue& operator[](const char* name) const {
        const auto index = schema_.argumentIndexWithName(name);
        TORCH_INTERNAL_ASSERT(index.has_value(), name);
        return stack_[first_ + static_cast<std::size_t>(*index)];
    }
    at::Tensor tensor(const char* name) const { return (*this)[name].toTensor(); }
    bool flag(const char* name) const { return (*this)[name].toBool(); }
    std::int64_t integer(const char* name) const { return (*this)[name].toInt(); }
    double number(const char* name) const { return (*this)[name].toDouble(); }
    std::string word(const char* name) const { return std::string((*this)[name].toStringView()); }

    /// An optional tensor's values, row by row; empty for None.
    template <typename Value>
    std::vector<Value> values(const char* name, std::int64_t dimensions) const {
        if ((*this)[name].isNone()) return {};
        const at::Tensor given = tensor(name);
        TORCH_CHECK_VALUE(given.dim() == dimensions, "[", name, "] expected ", dimensions, " dimensions; found ",
                          given.dim());
        TORCH_CHECK_VALUE(given.device().is_cpu(), "[", name, "] expected a CPU tensor; found one on ", given.device());
        const at::Tensor flat = given.detach().to(c10::CppTypeToScalarType<Value>::value).contiguous();
        const Value* data = flat.const_data_ptr<Value>();
        return std::vector<Value>(data, data + flat.numel());
    }

private:
    const c10::FunctionSchema& schema_;
    std::size_t first_;
    const torch::jit::Stack& stack_;
};

template <typename Choice>
Choice choose(const Arguments& arguments, const char* name,
              std::initializer_list<std::pair<const char*, Choice>> choices) {
    std::string names;
    for (const auto& [word, choice] : choices) {
        if (arguments.word(name) == word) return choice;
        names += (names.empty() ? "" : " or ") + std::string(word);
    }
    TORCH_CHECK_VALUE(false, "[", name, "] expected ", names, "; found ", arguments.word(name));
}

/// What can be said of shapes and types without data, so that Meta says it too.
void check_tensors(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    for (const auto& [name, t] : {std::pair{"query", &q}, {"key", &k}, {"value", &v}}) {
        TORCH_CHECK_VALUE(t->dim() == 4, "[", name, "] expected [batch, heads, length, size]; found ", t->dim(),
                          " dimensions");
        TORCH_CHECK_TYPE(t->scalar_type() == at::kFloat || t->scalar_type() == at::kBFloat16, "[", name,
                         "] expected float32 or bfloat16; found ", t->scalar_type());
    }
    const bool alike = q.sym_size(0) == k.sym_size(0) && q.sym_size(3) == k.sym_size(3) && k.sym_size(1) > 0 &&
                       q.sym_size(1) % k.sym_size(1) == 0;
    TORCH_CHECK_VALUE(alike, "[key] expected batch and size of the query, ", q.sym_sizes(),
                      ", and heads that divide its heads; found ", k.sym_sizes());
    const bool paired =
        k.sym_size(0) == v.sym_size(0) && k.sym_size(1) == v.sym_size(1) && k.sym_size(2) == v.sym_size(2);
    TORCH_CHECK_VALUE(paired, "[value] expected batch, heads and length of the key, ", k.sym_sizes(), "; found ",
                      v.sym_sizes());
}

ScoreRule rule_of(const Arguments& a, std::int64_t batch, std::int64_t heads, std::int64_t size) {
    ScoreRule rule;
    rule.scale = a["scale"].isNone() ? 1.0 / std::sqrt(static_cast<double>(size)) : a.number("scale");
    rule.soft_cap = a.number("soft_cap");
    rule.causal = a.flag("causal");
    rule.query_offset = a.integer("query_offset");
    rule.window_left = a.integer("window_left");
    rule.window_right = a.integer("window_right");
    rule.first_keys = a.integer("first_keys");
    rule.slopes = a.values<float>("slopes", 1);
    rule.distance_bias = a.values<float>("distance_bias", 2);
    if (!a["distance_bias"].isNone()) rule.bias_length = a.tensor("distance_bias").size(1);
    rule.bias_origin = a.integer("bias_origin");
    rule.beyond_table =
        choose<BeyondTable>(a, "beyond_table", {{"clamp", BeyondTable::clamp}, {"zero", BeyondTable::zero}});
    rule.sink_logits = a.values<float>("sink_logits", 1);
    const auto normaliser = find_normaliser(a.word("normaliser"));
    TORCH_CHECK_VALUE(normaliser.has_value(), "[normaliser] expected ", normaliser_list(), "; found ",
                      a.word("normaliser"));
    rule.normaliser = *normaliser;
    rule.query_length = a.values<std::int64_t>("query_length", 1);
    rule.key_begin = a.values<std::int64_t>("key_begin", 1);
    rule.key_length = a.values<std::int64_t>("key_length", 1);
    rule.blocks.block_size = a.integer("block_size");
    const bool blocks = !a["block_visible"].isNone();
    TORCH_CHECK_VALUE(blocks == (rule.blocks.block_size > 0),
                      "[block_size] expected a size with block_visible and 0 without; found ", rule.blocks.block_size);
    for (const bool seen : a.values<bool>("block_visible", 3)) rule.blocks.visible.push_back(seen ? 1 : 0);
    if (blocks) {
        const at::Tensor visible = a.tensor("block_visible");
        TORCH_CHECK_VALUE(visible.size(0) == batch && visible.size(1) == heads,
                          "[block_visible] expected [batch, heads, blocks]; found ", visible.sizes());
        rule.blocks.blocks = visible.size(2);
    }
    return rule;
}

StatisticsRequest request_of(const Arguments& a) {
    StatisticsRequest request;
    request.local_distances = a["local_distances"].toIntVector();
    request.histogram = a.flag("histogram");
    request.histogram_row_step = a.integer("histogram_row_step");
    request.head_diversity = a.flag("head_diversity");
    request.column_mass = a.flag("column_mass");
    request.thumbnails = a.flag("thumbnails");
    request.thumbnail_size = a.integer("thumbnail_size");
    request.per_query = a.flag("per_query");
    request.tokens = a.values<std::int32_t>("tokens", 2);
    // Not said: queries and keys of unequal number under no causal mask can be nothing else.
    const bool unequal = a.tensor("query").size(2) != a.tensor("key").size(2);
    request.cross = a["cross"].isNone() ? unequal && !a.flag("causal") && request.tokens.empty() : a.flag("cross");
    return request;
}

/// One named result: where Statistics keeps it, and its shape.
struct Result {
    const char* name;
    std::variant<std::vector<double> Statistics::*, std::vector<float> Statistics::*,
                 std::vector<std::uint64_t> Statistics::*>
        field;
    std::vector<c10::SymInt> shape;
    at::ScalarType type() const { return std::array{at::kDouble, at::kFloat, at::kLong}.at(field.index()); }
};

/// The results of a call with statistics, in the order of docs/operator.md; the same list serves CPU and Meta.
std::vector<Result> results_of(const Arguments& a) {
    using S = Statistics;
    const at::Tensor q = a.tensor("query"), k = a.tensor("key");
    const c10::SymInt batch = q.sym_size(0), heads = q.sym_size(1), queries = q.sym_size(2), keys = k.sym_size(2);
    const std::vector<c10::SymInt> per_head{batch, heads}, per_query{batch, heads, queries};
    const c10::SymInt distances = static_cast<std::int64_t>(a["local_distances"].toIntVector().size());
    std::vector<Result> results;
    const auto add = [&results](const char* name, auto field, std::vector<c10::SymInt> shape) {
        results.push_back({name, field, std::move(shape)});
    };
    add("entropy", &S::entropy, per_head);
    add("entropy_row_mean", &S::entropy_row_mean, per_head);
    add("concentration", &S::concentration, per_head);
    add("sink", &S::sink, per_head);
    add("local_focus", &S::local_focus, {batch, heads, distances});
    if (a.flag("head_diversity")) add("head_diversity", &S::head_diversity, {batch});
    add("density", &S::density, per_head);
    add("sparsity", &S::sparsity, per_head);
    add("zero_fraction", &S::zero_fraction, per_head);
    add("mean_distance", &S::mean_distance, per_head);
    if (!a["tokens"].isNone()) {
        add("duplicate", &S::duplicate, per_head);
        add("induction", &S::induction, per_head);
    }
    if (!a["sink_logits"].isNone()) add("virtual_sink", &S::virtual_sink, per_head);
    if (a.flag("column_mass")) add("column_mass", &S::column_mass, {batch, heads, keys});
    if (a.flag("histogram")) add("histogram", &S::histogram, {batch, heads, kHistogramBins});
    add("score_minimum", &S::score_minimum, per_head);
    add("score_maximum", &S::score_maximum, per_head);
    add("score_mean", &S::score_mean, per_head);
    add("score_variance", &S::score_variance, per_head);
    add("score_above", &S::score_above, {batch, heads, 3});
    if (a.flag("thumbnails")) {
        const c10::SymInt size = a.integer("thumbnail_size");
        const std::vector<c10::SymInt> shape{batch, heads, size.min(queries), size.min(keys)};
        add("thumbnail_mean", &S::thumbnail_mean, shape);
        add("thumbnail_maximum", &S::thumbnail_maximum, shape);
    }
    add("row_constant", &S::row_constant, per_query);
    if (a.flag("per_query")) {
        add("query_entropy", &S::query_entropy, per_query);
        add("query_square_sum", &S::query_square_sum, per_query);
        add("query_sink", &S::query_sink, per_query);
        add("query_mean_distance", &S::query_mean_distance, per_query);
    }
    return results;
}

using Dictionary = c10::Dict<std::string, at::Tensor>;

/// Copies values into a tensor of another integer type where need be (torch has little use for uint64).
template <typename Value>
void fill(const at::Tensor& tensor, const std::vector<Value>& values, const char* name) {
    using Stored = std::conditional_t<std::is_same_v<Value, std::uint64_t>, std::int64_t, Value>;
    TORCH_INTERNAL_ASSERT(tensor.numel() == static_cast<std::int64_t>(values.size()), name);
    std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<Stored>());
}

TensorView view_of(const at::Tensor& tensor) {
    return {tensor.const_data_ptr(), tensor.scalar_type() == at::kFloat ? ElementType::float32 : ElementType::bfloat16,
            tensor.size(0),          tensor.size(1),
            tensor.size(2),          tensor.size(3),
            tensor.stride(0),        tensor.stride(1),
            tensor.stride(2)};
}

at::Tensor with_unit_stride(const at::Tensor& tensor) {
    return tensor.stride(3) == 1 ? tensor : tensor.contiguous();
}

void replace_arguments(const c10::OperatorHandle& op, torch::jit::Stack& stack, at::Tensor output,
                       Dictionary statistics) {
    torch::jit::drop(stack, op.schema().arguments().size());
    torch::jit::push(stack, std::move(output), std::move(statistics));
}

void attention_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const Arguments a(op, *stack);
    check_tensors(a.tensor("query"), a.tensor("key"), a.tensor("value"));
    const at::Tensor q = with_unit_stride(a.tensor("query")), k = with_unit_stride(a.tensor("key")),
                     v = with_unit_stride(a.tensor("value"));
    const ScoreRule rule = rule_of(a, q.size(0), q.size(1), q.size(3));
    const bool measured = a.flag("statistics");
    const StatisticsRequest request = measured ? request_of(a) : StatisticsRequest{};
    const at::Tensor result = at::empty({q.size(0), q.size(1), q.size(2), v.size(3)}, q.options().dtype(at::kFloat));
    Statistics statistics;
    try {
        const OutputView view{result.mutable_data_ptr<float>(), result.stride(0), result.stride(1), result.stride(2)};
        attention({view_of(q), view_of(k), view_of(v), &rule, nullptr}, view, measured ? &request : nullptr,
                  measured ? &statistics : nullptr);
    } catch (const Error& error) {
        TORCH_CHECK_VALUE(false, error.what());
    }
    Dictionary dictionary;
    if (measured) {
        for (const Result& entry : results_of(a)) {
            const at::Tensor tensor = at::empty(C10_AS_INTARRAYREF_SLOW(entry.shape), q.options().dtype(entry.type()));
            std::visit([&](auto field) { fill(tensor, statistics.*field, entry.name); }, entry.field);
            dictionary.insert(entry.name, tensor);
        }
    }
    replace_arguments(op, *stack, result.to(q.scalar_type()), std::move(dictionary));
}

void attention_on_meta(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const Arguments a(op, *stack);
    const at::Tensor q = a.tensor("query"), v = a.tensor("value");
    check_tensors(q, a.tensor("key"), v);
    const std::vector<c10::SymInt> shape{q.sym_size(0), q.sym_size(1), q.sym_size(2), v.sym_size(3)};
    Dictionary dictionary;
    if (a.flag("statistics")) {
        for (const Result& entry : results_of(a)) {
            dictionary.insert(entry.name, at::empty_symint(entry.shape, q.options().dtype(entry.type())));
        }
    }
    replace_arguments(op, *stack, at::empty_symint(shape, q.options()), std::move(dictionary));
}

void attention_under_autograd(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
    const bool wanted = std::any_of(arguments.begin(), arguments.end(), [](const c10::IValue& value) {
        return value.isTensor() && value.toTensor().requires_grad();
    });
    TORCH_CHECK_NOT_IMPLEMENTED(
        !(wanted && at::GradMode::is_enabled()),
        "[headscope::attention] expected inputs that need no gradient: this operator has no backward yet; "
        "found one that requires grad. Call it under torch.no_grad(), or detach the inputs.");
    const at::AutoDispatchBelowADInplaceOrView below;
    op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
}

void set_threads_from_torch(std::int64_t number) {
    constexpr std::int64_t most = 4096;
    TORCH_CHECK_VALUE(number >= 0 && number <= most, "[threads] expected 0 (all processors) to ", most, "; found ",
                      number);
    set_threads(static_cast<int>(number));
}

}  // namespace
}  // namespace headscope::kernels

TORCH_LIBRARY(headscope, library) {
    library.def(headscope::kernels::kSchema, {at::Tag::pt2_compliant_tag});
    library.def("set_threads(int threads) -> ()", &headscope::kernels::set_threads_from_torch);
}

TORCH_LIBRARY_IMPL(headscope, CPU, library) {
    library.impl("attention", torch::CppFunction::makeFromBoxedFunction<&headscope::kernels::attention_on_cpu>());
}

TORCH_LIBRARY_IMPL(headscope, Meta, library) {
    library.impl("attention", torch::CppFunction::makeFromBoxedFunction<&headscope::kernels::attention_on_meta>());
}

TORCH_LIBRARY_IMPL(headscope, Autograd, library) {
    library.impl("attention",
                 torch::CppFunction::makeFromBoxedFunction<&headscope::kernels::attention_under_autograd>());
}

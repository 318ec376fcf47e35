// SPDX-License-Identifier: GPL-3.0-or-later
// torch.ops.headscope: kernels::attention for Python and for torch's dispatcher. docs/operator.md explains
// every argument and result. Boxed kernels read their arguments by the names of the schema, so that the schema is the
// only list of them. The backward pass is in torch_training.cpp.
#ifndef AT_PER_OPERATOR_HEADERS
#define AT_PER_OPERATOR_HEADERS
#endif
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "kernels/attention.h"
#include "kernels/backend.h"
#include "kernels/parallel.h"
#include "kernels/score_pairs.h"
#include "kernels/torch/arguments.h"

namespace headscope::kernels {
namespace {

const std::string& schema() {
    static const std::string text =
        std::string("attention(Tensor query, Tensor key, Tensor value, *, ") + kRuleSchema +
        ", bool statistics=False, int[] local_distances=[0, 1, 2, 3], bool histogram=True, int histogram_row_step=0, "
        "bool head_diversity=True, bool column_mass=True, bool thumbnails=True, int thumbnail_size=128, "
        "bool per_query=False, Tensor? tokens=None, bool? cross=None) "
        "-> (Tensor output, Dict(str, Tensor) statistics)";
    return text;
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

void replace_arguments(const c10::OperatorHandle& op, torch::jit::Stack& stack, at::Tensor output,
                       Dictionary statistics) {
    torch::jit::drop(stack, op.schema().arguments().size());
    torch::jit::push(stack, std::move(output), std::move(statistics));
}

void attention_on_device(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const Arguments a(op, *stack);
    check_tensors(a.tensor("query"), a.tensor("key"), a.tensor("value"));
    const at::Tensor q = with_unit_stride(a.tensor("query")), k = with_unit_stride(a.tensor("key")),
                     v = with_unit_stride(a.tensor("value"));
    const ScoreRule rule = rule_of(a, q.size(0), q.size(1), q.size(3));
    const bool measured = a.flag("statistics");
    const StatisticsRequest request = measured ? request_of(a) : StatisticsRequest{};
    const at::Tensor result = at::empty({q.size(0), q.size(1), q.size(2), v.size(3)}, q.options().dtype(at::kFloat));
    const KernelCall call(q);
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
            const at::Tensor tensor = at::empty(C10_AS_INTARRAYREF_SLOW(entry.shape), at::TensorOptions(entry.type()));
            std::visit([&](auto field) { fill(tensor, statistics.*field, entry.name); }, entry.field);
            dictionary.insert(entry.name, tensor.to(q.device()));
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

void set_threads_from_torch(std::int64_t number) {
    constexpr std::int64_t most = 4096;
    TORCH_CHECK_VALUE(number >= 0 && number <= most, "[threads] expected 0 (all processors) to ", most, "; found ",
                      number);
    set_threads(static_cast<int>(number));
}

}  // namespace
}  // namespace headscope::kernels

TORCH_LIBRARY(headscope, library) {
    library.def(torch::schema(headscope::kernels::schema().c_str()), {at::Tag::pt2_compliant_tag});
    library.def("set_threads(int threads) -> ()", &headscope::kernels::set_threads_from_torch);
}

TORCH_LIBRARY_IMPL(headscope, CPU, library) {
    library.impl("attention", torch::CppFunction::makeFromBoxedFunction<&headscope::kernels::attention_on_device>());
}

TORCH_LIBRARY_IMPL(headscope, CUDA, library) {
    library.impl("attention", torch::CppFunction::makeFromBoxedFunction<&headscope::kernels::attention_on_device>());
}

TORCH_LIBRARY_IMPL(headscope, Meta, library) {
    library.impl("attention", torch::CppFunction::makeFromBoxedFunction<&headscope::kernels::attention_on_meta>());
}

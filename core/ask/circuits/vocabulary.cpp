// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/circuits/vocabulary.h"

#include <algorithm>
#include <tuple>

#include <ATen/TensorOperators.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>

#include "core/ask/parts.h"
#include "core/model/device.h"
#include "core/model/model.h"

namespace headscope::ask::circuits {
namespace {

constexpr std::int64_t kEntriesAtOnce = 16'000'000;  // of a token x token matrix, float32
constexpr std::int64_t kTokensAtOnce = 8192;         // of a sum over tokens, float64

}  // namespace

TokenMaps token_maps(const model::Model& model, bool fold) {
    const model::Stack& stack = stack_of(model);
    const model::Head& head = stack.head();
    const auto floats = [](const at::Tensor& weight) { return model::on_processor(weight).to(at::kFloat); };
    const auto table_of = [&](const model::Embedding& table) -> at::Tensor {
        if (!table.tokens.defined()) return {};
        const at::Tensor tokens = floats(table.tokens);
        return table.projection.there() ? tokens.matmul(floats(table.projection.weight).t()) : tokens;
    };
    TokenMaps maps;
    maps.embedding = table_of(stack.tower().embedding());
    if (const model::Tower* encoder = stack.encoder()) maps.source = table_of(encoder->embedding());
    if (!model.has_head() || head.transform.there() || !head.vocabulary.weight.defined()) return maps;
    maps.unembedding = floats(head.vocabulary.weight);
    if (head.projection.there()) maps.unembedding = maps.unembedding.matmul(floats(head.projection.weight));
    const model::Norm& norm = stack.tower().final_norm();
    if (!fold || (norm.affine && !norm.weight.defined())) return maps;
    if (const at::Tensor gain = norm.gain(); gain.defined()) maps.unembedding = maps.unembedding * floats(gain);
    if (norm.kind == model::NormKind::layer) maps.unembedding = maps.unembedding - maps.unembedding.mean(1, true);
    return maps;
}

at::Tensor unembedded_embedding(const TokenMaps& maps, const Cancellation& cancellation) {
    if (!maps.embedding.defined() || !maps.unembedding.defined()) return {};
    const std::int64_t tokens = std::min(maps.embedding.size(0), maps.unembedding.size(0));
    const std::int64_t size = maps.embedding.size(1);
    at::Tensor sum = at::zeros({size, size}, at::kDouble);
    for (std::int64_t first = 0; first < tokens; first += kTokensAtOnce) {
        cancellation.check();
        const std::int64_t count = std::min(kTokensAtOnce, tokens - first);
        sum += maps.unembedding.narrow(0, first, count)
                   .t()
                   .to(at::kDouble)
                   .matmul(maps.embedding.narrow(0, first, count).to(at::kDouble));
    }
    return sum;
}

at::Tensor copying_score(const HeadFactors& factors, const at::Tensor& unembedded_embedding) {
    return eigenvalue_score(
        factors.output.to(at::kDouble).matmul(unembedded_embedding).matmul(factors.value.to(at::kDouble)));
}

std::vector<TokenPair> largest_entries(const at::Tensor& left, const at::Tensor& right, std::int64_t count,
                                       const Cancellation& cancellation) {
    const std::int64_t columns = right.size(0), step = std::max<std::int64_t>(1, kEntriesAtOnce / columns);
    const at::Tensor turned = right.t().contiguous();
    std::vector<TokenPair> best;
    for (std::int64_t first = 0; first < left.size(0); first += step) {
        cancellation.check();
        const at::Tensor some = left.narrow(0, first, std::min(step, left.size(0) - first)).matmul(turned).flatten();
        const auto [values, places] = at::topk(some, std::min(count, some.size(0)));
        for (std::int64_t k = 0; k < values.size(0); ++k) {
            const std::int64_t place = places[k].item<std::int64_t>();
            best.push_back({first + place / columns, place % columns, values[k].item<double>()});
        }
        std::sort(best.begin(), best.end(), [](const TokenPair& a, const TokenPair& b) {
            return std::tuple(-a.value, a.row, a.column) < std::tuple(-b.value, b.row, b.column);
        });
        if (std::ssize(best) > count) best.resize(static_cast<std::size_t>(count));
    }
    return best;
}

}  // namespace headscope::ask::circuits

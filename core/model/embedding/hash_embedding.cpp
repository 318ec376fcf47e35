// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/embedding/hash_embedding.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include "core/model/random_fill.h"
#include "core/model/training_ops.h"
#include "core/tokenizer/hashed/word_hash.h"

namespace headscope::model {
namespace {

using tokenizer::EmbeddingKind;

at::Tensor rows_of(const at::Tensor& table, const at::Tensor& ids) {
    return fused_on_processor(table) ? trained_embedding(table, ids) : at::embedding(table, ids);
}

/// One draw for all words of a step.
at::Tensor dropped_table(const at::Tensor& table, const TrainingForward* training) {
    if (!training) return table;
    return drop(table, training->dropout, random_key(training->dropout_seed, "hash embedding"));
}

/// Minus the mean of the last dimension, and of length 1, or 0 where it was shorter than 1e-8.
at::Tensor standardised(const at::Tensor& x) {
    const at::Tensor centred = x - x.mean(-1, true);
    return centred / at::linalg_vector_norm(centred, 2, at::IntArrayRef{-1}, true).clamp_min(1e-8);
}

}  // namespace

void HashEmbedding::declare(TensorPlan& plan, const std::string& prefix, const Dimension& hidden) {
    settings = plan.config().hashed;
    if (settings.hash == tokenizer::WordHashKind::lsh) {
        const std::string name = prefix + "hash_normal";
        const std::int64_t in_file = plan.rows_in_file(name);
        plan.want(&normal, {name}, {{in_file > 0 ? in_file : settings.ngrams, "ngrams.json"}}, Initial::hyperplane);
        plan.keep_exact();
    }
    if (settings.is_table() || settings.kind == EmbeddingKind::emb) return;
    const auto want = [&](at::Tensor& into, const std::string& name, std::vector<Dimension> shape) {
        plan.want(&into, {prefix + name + ".weight"}, std::move(shape));
    };
    const bool words_share = settings.kind != EmbeddingKind::linear && settings.kind != EmbeddingKind::characters;
    want(special, "embed_special", {{tokenizer::kSpecialTokens + (words_share ? 1 : 0), "special tokens"}, hidden});
    const Dimension all_bits{settings.bits, "embedding.bits"};
    switch (settings.kind) {
        case EmbeddingKind::pool:
            want(codes, "embed_codes", {{std::int64_t{1} << settings.group_bits, "2^embedding.group_bits"}, hidden});
            want(parts, "embed_parts", {{settings.groups(), "embedding.bits / group_bits"}, hidden});
            break;
        case EmbeddingKind::add:
            want(bits, "embed_bits", {all_bits, {2, "values of a bit"}, hidden});
            break;
        case EmbeddingKind::characters:
            want(buckets, "embed_buckets",
                 {{settings.functions, "embedding.hash_functions"},
                  {settings.buckets, "embedding.buckets"},
                  {hidden.size / settings.functions, hidden.keys + " / embedding.hash_functions"}});
            break;
        default:
            want(axes, "embed_axes", {hidden, all_bits});
    }
}

at::Tensor HashEmbedding::operator()(const Batch& batch, const TrainingForward* training) const {
    const at::Tensor is_word = batch.ids.ge(tokenizer::kSpecialTokens).unsqueeze(-1);
    const bool words_share = special.size(0) > tokenizer::kSpecialTokens;
    const at::Tensor known = rows_of(special, batch.ids.clamp_max(special.size(0) - 1));
    const at::Tensor features =
        settings.kind == EmbeddingKind::characters ? batch.features : batch.features.to(special.scalar_type());
    at::Tensor made;
    switch (settings.kind) {
        case EmbeddingKind::pool:
            made = pooled(features, training);
            break;
        case EmbeddingKind::add:
            made = added(features, training);
            break;
        case EmbeddingKind::proj:
            made = correlated(features);
            break;
        case EmbeddingKind::characters:
            made = bucket_rows(features.squeeze(-1));
            break;
        default:
            made = at::linear(features * 2 - 1, axes);
    }
    return at::where(is_word, words_share ? known + made : made, known);
}

at::Tensor HashEmbedding::pooled(const at::Tensor& words, const TrainingForward* training) const {
    const std::int64_t length = words.size(-1), size = settings.group_bits, count = words.numel() / length;
    const at::Tensor table = dropped_table(codes, training), weights = at::softmax(parts, 0);
    at::Tensor sum;
    for (std::int64_t group = 0; group < settings.groups(); ++group) {
        const std::int64_t first = group * size, here = std::min(size, length - first);
        std::vector<double> values;  // of the group's bits
        for (std::int64_t bit = here; bit-- > 0;) values.push_back(std::ldexp(1.0, static_cast<int>(bit)));
        const at::Tensor code = at::matmul(words.narrow(-1, first, here).to(at::kDouble),
                                           at::tensor(values, words.options().dtype(at::kDouble)))
                                    .to(at::kLong);
        // With many words the table is weighted once, instead of each word's row.
        const at::Tensor weight = weights.select(0, group);
        const at::Tensor rows = count > table.size(0) ? rows_of(table * weight, code) : rows_of(table, code) * weight;
        sum = sum.defined() ? sum + rows : rows;
    }
    return sum;
}

at::Tensor HashEmbedding::added(const at::Tensor& words, const TrainingForward* training) const {
    const at::Tensor table = dropped_table(bits, training);
    const at::Tensor zeros = table.select(1, 0), ones = table.select(1, 1);
    const double scale = 1 / std::sqrt(static_cast<double>(words.size(-1)));
    return (at::matmul(words, ones - zeros) + zeros.sum(0)) * scale;
}

at::Tensor HashEmbedding::correlated(const at::Tensor& words) const {
    return at::linear(standardised(words), standardised(axes));
}

at::Tensor HashEmbedding::bucket_rows(const at::Tensor& points) const {
    const auto& primes = tokenizer::kCharacterPrimes;
    const at::Tensor factors =
        at::tensor(std::vector<std::int64_t>(primes.begin(), primes.begin() + settings.functions),
                   points.options().dtype(at::kLong));
    const at::Tensor first = at::tensor(
        [&] {
            std::vector<std::int64_t> begins;
            for (std::int64_t k = 0; k < settings.functions; ++k) begins.push_back(k * settings.buckets);
            return begins;
        }(),
        points.options().dtype(at::kLong));
    const at::Tensor rows = ((points + 1).unsqueeze(-1) * factors).remainder(settings.buckets) + first;
    return rows_of(buckets.flatten(0, 1), rows).flatten(-2);
}

}  // namespace headscope::model

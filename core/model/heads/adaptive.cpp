// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/heads/adaptive.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>

#include "core/model/load/tensor_plan.h"

namespace headscope::model {
namespace {

std::int64_t tables(const AdaptiveConfig& config) {
    return config.divisor == 1 ? 1 : config.clusters();
}

Dimension entries_of(const AdaptiveConfig& config, std::int64_t table) {
    if (config.divisor == 1) return {config.ends.back(), "vocab_size"};
    return {config.entries(table), "cutoffs, cluster " + std::to_string(table)};
}

Dimension size_of(const AdaptiveConfig& config, std::int64_t cluster) {
    std::string keys = "d_embed";
    for (std::int64_t n = 0; n < cluster && config.divisor > 1; ++n) keys += " / div_val";
    return {config.size_of(cluster), keys};
}

/// With one table for all, vectors of the model's size are not mapped.
bool mapped(const ModelConfig& config) {
    return config.adaptive->divisor > 1 || config.adaptive->size != config.hidden;
}

std::string numbered_name(const std::string& stem, const char* part, std::int64_t number) {
    return stem + part + std::to_string(number);
}

}  // namespace

void AdaptiveTables::declare(TensorPlan& plan, const std::string& stem) {
    const ModelConfig& config = plan.config();
    config_ = *config.adaptive;
    vectors.resize(static_cast<std::size_t>(tables(config_)));
    maps.resize(vectors.size());
    for (std::int64_t n = 0; n < tables(config_); ++n) {
        const auto index = static_cast<std::size_t>(n);
        plan.want(&vectors[index], {numbered_name(stem, ".emb_layers.", n) + ".weight"},
                  {entries_of(config_, n), size_of(config_, n)});
        if (!mapped(config)) continue;
        plan.want(&maps[index], {numbered_name(stem, ".emb_projs.", n)},
                  {{config.hidden, plan.keys().hidden}, size_of(config_, n)});
    }
}

at::Tensor AdaptiveTables::rows_of(const at::Tensor& ids) const {
    const auto read = [this](std::size_t table, const at::Tensor& numbers) {
        const at::Tensor found = at::embedding(vectors[table], numbers);
        return maps[table].defined() ? at::linear(found, maps[table]) : found;
    };
    if (vectors.size() == 1) return read(0, ids);
    const at::Tensor flat = ids.flatten();
    at::Tensor rows = at::empty({flat.size(0), maps.front().size(0)}, maps.front().options());
    for (std::size_t n = 0; n < vectors.size(); ++n) {
        const std::int64_t begin = config_.begin(static_cast<std::int64_t>(n));
        const at::Tensor own = (flat >= begin).logical_and(flat < config_.ends[n]).nonzero().squeeze(1);
        if (own.numel() > 0) rows.index_copy_(0, own, read(n, flat.index_select(0, own) - begin));
    }
    return rows.view({ids.size(0), ids.size(1), rows.size(1)});
}

void AdaptiveHead::declare(TensorPlan& plan, const TensorNames& names) {
    const ModelConfig& config = plan.config();
    config_ = *config.adaptive;
    const std::string first = numbered_name(names.head, ".out_layers.", 0) + ".bias";
    if (!plan.has(first)) {
        plan.note_missing(first);
        plan.note("no head for the vocabulary in the file: no logits");
        return;
    }
    const std::string embedding = names.prefix + names.adaptive_embedding;
    vectors_.resize(static_cast<std::size_t>(tables(config_)));
    biases_.resize(vectors_.size());
    for (std::int64_t n = 0; n < tables(config_); ++n) {
        const auto index = static_cast<std::size_t>(n);
        const std::string own = numbered_name(names.head, ".out_layers.", n);
        const std::string table = config_.tied_tables ? numbered_name(embedding, ".emb_layers.", n) : own;
        plan.want(&vectors_[index], {table + ".weight"}, {entries_of(config_, n), size_of(config_, n)});
        plan.want(&biases_[index], {own + ".bias"}, {entries_of(config_, n)});
    }
    maps_.resize(static_cast<std::size_t>(config_.clusters()));
    for (std::int64_t n = 0; n < config_.clusters() && mapped(config); ++n) {
        const auto index = static_cast<std::size_t>(n);
        const std::string name = config_.tied_maps[index]
                                     ? numbered_name(embedding, ".emb_projs.", config_.divisor == 1 ? 0 : n)
                                     : numbered_name(names.head, ".out_projs.", n);
        plan.want(&maps_[index], {name}, {{config.hidden, plan.keys().hidden}, size_of(config_, n)});
    }
    if (config_.tied_tables) plan.note("the head shares the tables of the token embedding");
    if (config_.clusters() == 1) return;
    const Dimension others{config_.clusters() - 1, "cutoffs"};
    plan.want(&cluster_vectors_, {names.head + ".cluster_weight"}, {others, size_of(config_, 0)});
    plan.want(&cluster_biases_, {names.head + ".cluster_bias"}, {others}, Initial::bias);
}

at::Tensor AdaptiveHead::logits(std::int64_t cluster, const at::Tensor& rows) const {
    const auto index = static_cast<std::size_t>(cluster);
    const bool one_table = vectors_.size() == 1;
    const std::size_t table = one_table ? 0 : index;
    const std::int64_t begin = one_table ? config_.begin(cluster) : 0;
    at::Tensor vectors = vectors_[table].narrow(0, begin, config_.entries(cluster));
    at::Tensor biases = biases_[table].narrow(0, begin, config_.entries(cluster));
    if (cluster == 0 && cluster_vectors_.defined()) {
        vectors = at::cat({vectors, cluster_vectors_}, 0);
        biases = at::cat({biases, cluster_biases_}, 0);
    }
    return at::linear(maps_[index].defined() ? at::linear(rows, maps_[index].t()) : rows, vectors, biases);
}

at::Tensor AdaptiveHead::operator()(const at::Tensor& rows) const {
    const auto shares = [this, &rows](std::int64_t cluster) {
        const at::Tensor scores = logits(cluster, rows);
        return at::log_softmax(scores.scalar_type() == at::kDouble ? scores : scores.to(at::kFloat), 1);
    };
    at::Tensor all = at::empty({rows.size(0), config_.ends.back()}, rows.options().dtype(at::kFloat));
    const at::Tensor first = shares(0);
    const std::int64_t frequent = config_.entries(0);
    all.narrow(1, 0, frequent).copy_(first.narrow(1, 0, frequent));
    for (std::int64_t n = 1; n < config_.clusters(); ++n)
        all.narrow(1, config_.begin(n), config_.entries(n)).copy_(first.narrow(1, frequent + n - 1, 1) + shares(n));
    return all;
}

}  // namespace headscope::model

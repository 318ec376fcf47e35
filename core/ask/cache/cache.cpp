// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/cache/cache.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <ATen/TensorOperators.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/InferenceMode.h>

#include "core/analysis/dense_rows.h"
#include "core/ask/answers.h"
#include "core/ask/cells.h"
#include "core/ask/parts.h"
#include "core/ask/readers.h"
#include "core/ask/sweep.h"
#include "core/base/error.h"
#include "core/model/edits/intervention.h"
#include "core/model/model.h"

namespace headscope::ask::cache {
namespace {

using model::Point;
using model::PointKey;

std::string cache_path(Scorer scorer, const char* table) {
    return "/cache/" + std::string(name(scorer)) + "/" + table;
}

class CacheRun {
public:
    CacheRun(model::Model& model, const CacheOptions& options, store::AskRecord& record)
        : model_(model), options_(options), record_(record) {
        const bool expects = std::find(options.scorers.begin(), options.scorers.end(), Scorer::expected_attention) !=
                             options.scorers.end();
        if (!expects) return;
        for (const PointKey& key : model::places_of(Point::query, model.config(), model.sites()))
            if (const Site& own = model.sites()[static_cast<std::size_t>(key.site)];
                own.has_matrix && attends_predicted(own))
                queries_.push_back(key);
        for (const PointKey& key : queries_)
            if (rotary_of(key.layer) == nullptr) refuse(key.layer, "rotary positions for expected_attention", "none");
    }

    void sequence(std::int64_t s, const Cancellation& cancellation) {
        const store::SequenceTokens& text = record_.sequences[static_cast<std::size_t>(s)];
        std::map<std::int64_t, at::Tensor> queries;
        SiteReader sites(model_.sites(), text, [&](const model::AttentionRecord& record) {
            if (attends_predicted(record.description) && record.rule.normaliser == kernels::Normaliser::softmax)
                site(s, record, queries[record.site.value], cancellation);
            queries.clear();
        });
        ValueReader values(queries_, [&](const PointKey& key, const at::Tensor& value) {
            queries[key.site] = value[0].to(at::kDouble).clone();
        });
        read_run(model_, text_input(text), sites, &values, options_.editor, cancellation);
        put(record_, "/cache/done", {s}, 1);
    }

private:
    const model::Rotary* rotary_of(std::int64_t layer) const {
        const auto& encoder = model_.config().encoder;  // its layers have the first numbers
        return stack_of(model_).tower().rotary_of(encoder ? layer - encoder->layers : layer);
    }

    [[noreturn]] void refuse(std::int64_t layer, const std::string& expected, const std::string& found) const {
        throw Error(ErrorCode::unsupported, "ask cache",
                    "expected layer " + std::to_string(layer) + " (" +
                        record_.mixers.at(static_cast<std::size_t>(layer)) + ") to have " + expected,
                    "found " + found);
    }

    void site(std::int64_t s, const model::AttentionRecord& record, const at::Tensor& query,
              const Cancellation& cancellation) {
        const std::int64_t heads = record.query.size(1), groups = record.key.size(1);
        const std::int64_t layer = record.description.layer, context = options_.scoring.context;
        if (heads % groups != 0 || record.value.size(1) != groups || groups != record.description.key_value_heads)
            refuse(layer, std::to_string(record.description.key_value_heads) + " key and value heads",
                   std::to_string(groups) + " and " + std::to_string(record.value.size(1)));
        ScoredSite site;
        site.key = record.key[0].to(at::kDouble);
        site.value = record.value[0].to(at::kDouble);
        at::Tensor tail = weights(record, site, cancellation);
        if (query.defined()) {
            site.query = query;
            site.rotation = mean_rotation(layer, query, record.query[0]);
        }
        std::vector<at::Tensor> outputs;
        for (std::int64_t head = 0; head < heads; ++head)
            outputs.push_back(at::matmul(tail[head].to(at::kDouble), site.value[head / (heads / groups)]));
        for (const Scorer scorer : options_.scorers) {
            for (std::size_t r = 0; r < options_.ratios.size(); ++r) {
                cancellation.check();
                const double ratio = options_.ratios[r];
                const at::Tensor scores = scores_of(scorer, site, options_.scoring, ratio);
                const auto number = static_cast<std::int64_t>(r);
                for (std::int64_t g = 0; g < groups; ++g) {
                    const auto kept = best_keys(scores[g], kept_keys(context, ratio));
                    for (std::size_t i = 0; i < kept.size(); ++i)
                        put(record_, cache_path(scorer, "kept"),
                            {s, number, record.site.value, g, static_cast<std::int64_t>(i)},
                            static_cast<double>(kept[i]));
                    for (std::int64_t head = g * (heads / groups); head < (g + 1) * (heads / groups); ++head)
                        put(record_, cache_path(scorer, "error"), {s, number, record.site.value, head},
                            error_of(tail[head].to(at::kDouble), site.value[g], kept,
                                     outputs[static_cast<std::size_t>(head)], !record.rule.sink_logits.empty()));
                }
            }
        }
    }

    /// Fills what scorers read of the weights; returns those of the queries behind the context, [H, L - C, L].
    at::Tensor weights(const model::AttentionRecord& record, ScoredSite& site, const Cancellation& cancellation) const {
        const std::int64_t heads = record.query.size(1), length = record.query.size(2);
        const std::int64_t context = options_.scoring.context, window = std::min(options_.scoring.window, context);
        at::Tensor tail = at::zeros({heads, length - context, length}, at::kFloat);
        site.column_sums = at::zeros({heads, context}, at::kDouble);
        site.window_rows = at::zeros({heads, window, context}, at::kDouble);
        site.last_row = at::zeros({heads, context}, at::kDouble);
        analysis::for_dense_rows(
            record, 0, cancellation, [&](std::int64_t head, std::int64_t first, std::span<const float> block) {
                double* const sums = site.column_sums.mutable_data_ptr<double>() + head * context;
                for (std::int64_t row = 0; row * length < std::ssize(block); ++row) {
                    const float* const from = block.data() + row * length;
                    const std::int64_t i = first + row;
                    if (i >= context) {
                        std::copy_n(
                            from, length,
                            tail.mutable_data_ptr<float>() + (head * (length - context) + i - context) * length);
                        continue;
                    }
                    for (std::int64_t j = 0; j < context; ++j) sums[j] += from[j];
                    if (i >= context - window)
                        std::copy_n(from, context,
                                    site.window_rows.mutable_data_ptr<double>() +
                                        (head * window + i - context + window) * context);
                    if (i + 1 == context)
                        std::copy_n(from, context, site.last_row.mutable_data_ptr<double>() + head * context);
                }
            });
        return tail;
    }

    /// Rows are turned unit vectors, in the mean over the positions behind the context.
    at::Tensor mean_rotation(std::int64_t layer, const at::Tensor& query, const at::Tensor& turned) const {
        const model::Rotary& rotary = *rotary_of(layer);
        const at::Tensor rows = query.to(at::kFloat).transpose(0, 1).unsqueeze(0).contiguous();  // [1, L, H, dk]
        const at::Tensor own = rotary.rotate(rows, rotary.table(0, rows.size(1), at::kFloat))[0].transpose(0, 1);
        const at::Tensor wanted = turned.to(at::kFloat);
        const double apart = (own - wanted).abs().max().item<double>(), size = wanted.abs().max().item<double>();
        if (!(apart <= 1e-3 * std::max(size, 1e-6)))
            refuse(layer, "queries that rotation alone changes, for expected_attention", "others");
        const std::int64_t numbers = query.size(2), future = options_.future;
        const at::Tensor units = at::eye(numbers, at::kFloat).unsqueeze(0).unsqueeze(0);
        const at::Tensor all = units.expand({1, future, numbers, numbers}).contiguous();
        return rotary.rotate(all, rotary.table(options_.scoring.context, future, at::kFloat))[0]
            .to(at::kDouble)
            .mean(0);
    }

    /// ||O' - O|| / ||O|| of rows behind the context. A learned sink keeps its share of a row's denominator.
    double error_of(const at::Tensor& tail, const at::Tensor& value, const std::vector<std::int64_t>& kept,
                    const at::Tensor& output, bool sink) const {
        const std::int64_t length = tail.size(1), context = options_.scoring.context;
        at::Tensor mask = at::zeros({length}, at::kDouble);
        mask.narrow(0, context, length - context).fill_(1);
        for (const std::int64_t key : kept) mask[key] = 1;
        const at::Tensor left = tail * mask;
        at::Tensor mass = left.sum(1, true);
        if (sink) mass = mass + (1 - tail.sum(1, true)).clamp_min(0);
        const at::Tensor weights = at::where(mass > 0, left / mass, at::zeros_like(left));
        return ((at::matmul(weights, value) - output).norm() / output.norm()).item<double>();
    }

    model::Model& model_;
    const CacheOptions& options_;
    store::AskRecord& record_;
    std::vector<PointKey> queries_;
};

void add_cache_tables(const CacheOptions& options, store::AskRecord& record) {
    record.add_table("/cache/done", {"/sequence"}, "1: the text is in place");
    record.add_table("/cache/ratio", {"/ratio"}, "share of the context's keys that is removed");
    record.add_table("/cache/keys", {"/ratio"}, "keys that stay", "", true);
    for (std::size_t r = 0; r < options.ratios.size(); ++r) {
        const auto number = static_cast<std::int64_t>(r);
        put(record, "/cache/ratio", {number}, options.ratios[r]);
        put(record, "/cache/keys", {number},
            static_cast<double>(kept_keys(options.scoring.context, options.ratios[r])));
    }
    for (const Scorer scorer : options.scorers) {
        record.add_table(cache_path(scorer, "kept"), {"/sequence", "/ratio", "/site", "/key_value_head", "/kept"},
                         "positions of the keys that stay", "", true);
        record.add_table(cache_path(scorer, "error"), {"/sequence", "/ratio", "/site", "/head"},
                         "change of the outputs behind the context over their norm");
    }
}

void check_cache(const CacheOptions& options, const store::AskRecord& record) {
    const std::int64_t context = options.scoring.context;
    if (context < 1) throw Error(ErrorCode::usage, "--context", "expected a number of tokens", "found none");
    if (options.scorers.empty()) throw Error(ErrorCode::usage, "--scorers", "expected a scorer", "found none");
    if (options.ratios.empty()) throw Error(ErrorCode::usage, "--ratios", "expected a ratio", "found none");
    if (options.scoring.kernel % 2 == 0)
        throw Error(ErrorCode::usage, "--kernel", "expected an odd number",
                    "found " + std::to_string(options.scoring.kernel));
    for (const double ratio : options.ratios)
        if (!(ratio >= 0 && ratio < 1))
            throw Error(ErrorCode::usage, "--ratios", "expected shares from 0 to below 1",
                        "found " + std::to_string(ratio));
    for (const Scorer scorer : options.scorers) check_scorer(scorer, options.scoring, options.ratios);
    for (std::size_t s = 0; s < record.sequences.size(); ++s) {
        const store::SequenceTokens& text = record.sequences[s];
        const std::int64_t length = std::ssize(text.predicted().ids);
        if (length <= context)
            throw Error(ErrorCode::usage, "--context",
                        "expected fewer than the " + std::to_string(length) + " tokens of " +
                            (text.target ? "target " : "text ") + std::to_string(s),
                        "found " + std::to_string(context));
    }
}

}  // namespace

void run_cache(model::Model& model, const CacheOptions& options, store::AskRecord& record, Progress& progress,
               const Cancellation& cancellation) {
    const c10::InferenceMode inference;
    check_decoder(model, "cache", true);
    check_scores(model, options.editor, "cache");
    check_cache(options, record);
    std::int64_t groups = 0, kept = 0;
    for (const Site& site : record.sites) groups = std::max<std::int64_t>(groups, site.key_value_heads);
    for (const double ratio : options.ratios) kept = std::max(kept, kept_keys(options.scoring.context, ratio));
    record.add_dimension("/ratio", std::ssize(options.ratios), "ratio, counted from 0");
    record.add_dimension("/key_value_head", groups, "key-value head, counted from 0");
    record.add_dimension("/kept", kept, "key that stays, counted from 0");
    if (record.tables.empty()) add_cache_tables(options, record);
    CacheRun run(model, options, record);
    for_open_texts(
        record, static_cast<double>(record.sequences.size()), progress, options.saved,
        [&](std::int64_t s) { return has(record, "/cache/done", {s}); },
        [&](std::int64_t s) { run.sequence(s, cancellation); });
    record.complete = true;
}

}  // namespace headscope::ask::cache

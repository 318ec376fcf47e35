// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/attribution.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

#include "core/ask/answers.h"
#include "core/ask/cells.h"
#include "core/ask/parts.h"
#include "core/base/error.h"
#include "core/model/edits/intervention.h"
#include "core/model/model.h"

namespace headscope::ask {
namespace {

using model::Point;
using model::PointKey;

[[noreturn]] void refuse(const std::string& expected, const std::string& found) {
    throw Error(ErrorCode::unsupported, "ask attribution", "expected " + expected, "found " + found);
}

/// A linear form on vectors [d], and a constant: a norm frozen at one input turns it into another.
struct Form {
    at::Tensor weight;  ///< [d] float64
    double constant = 0;

    double of(const at::Tensor& vector) const { return weight.dot(vector.to(at::kDouble)).item<double>(); }

    /// The form of what enters `norm`, whose input was `input`; the norm's bias joins the constant.
    Form before(const model::Norm& norm, const at::Tensor& input) const {
        if (norm.affine && !norm.weight.defined()) return *this;
        const at::Tensor x = input.to(at::kDouble);
        at::Tensor gained = weight;
        if (norm.weight.defined()) gained = weight * (norm.weight.to(at::kDouble) + norm.gain_offset);
        if (norm.kind != model::NormKind::layer) return {gained / (x.square().mean() + norm.epsilon).sqrt(), constant};
        const at::Tensor deviation = ((x - x.mean()).square().mean() + norm.epsilon).sqrt();
        const double bias = norm.bias.defined() ? weight.dot(norm.bias.to(at::kDouble)).item<double>() : 0;
        return {(gained - gained.mean()) / deviation, constant + bias};
    }
    Form times(double factor) const { return {weight * factor, constant * factor}; }
};

class Attribution {
public:
    Attribution(model::Model& model, const AttributionOptions& options, store::AskRecord& record)
        : model_(model), options_(options), record_(record), stack_(stack_of(model)), config_(model.config()) {
        check();
    }

    void sequence(std::int64_t s, const Cancellation& cancellation) {
        const auto& own = record_.sequences[static_cast<std::size_t>(s)].ids;
        const std::vector<std::int64_t> tokens(own.begin(), own.end());
        const std::int64_t length = std::ssize(tokens);
        const std::int64_t position = options_.position < 0 ? length + options_.position : options_.position;
        if (position < 0 || position >= length)
            throw Error(ErrorCode::usage, "--position", "expected a position below " + std::to_string(length),
                        "found " + std::to_string(options_.position));
        std::vector<PointKey> places{{Point::embedding, -1, -1}, {Point::hidden, config_.layers - 1, -1}};
        for (const Point point : {Point::mixer_output, Point::attention_output, Point::feed_forward_output})
            for (const PointKey& key : model::places_of(point, config_, model_.sites())) places.push_back(key);
        at::Tensor last;
        const RunValues values =
            record_run(model_, at::tensor(tokens, at::kLong), places, options_.editor, cancellation, &last);
        const c10::InferenceMode inference;
        const auto row = [&](const PointKey& key) { return values.at(key)[0][position]; };
        Form form = unembedding();
        put("/attribution/unembedding_bias", {s}, form.constant);
        const double logit = form.of(last[0][position]) + form.constant;
        const double head_bias = form.constant;
        form.constant = 0;
        form = form.before(stack_.tower().final_norm(), row(places[1]));
        put("/attribution/final_norm_bias", {s}, form.constant);
        double total = head_bias + form.constant;
        form.constant = 0;
        total += embedding(s, form, row(places[0]), position);
        const auto layers = stack_.tower().layers();
        for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
            const model::Layer& block = *layers[static_cast<std::size_t>(layer)];
            const PointKey feed{Point::feed_forward_output, layer, -1};
            if (values.contains(feed)) {
                const double term = form.of(row(feed));
                put("/attribution/feed_forward", {s, layer}, term);
                total += term;
            }
            for (const PointKey& key : model::places_of(Point::attention_output, config_, model_.sites())) {
                if (key.layer != layer) continue;
                const PointKey mixed{Point::mixer_output, layer, key.site};
                total += attention(s, key, form, block, row(key), row(mixed));
            }
        }
        put("/attribution/total", {s}, total);
        put("/attribution/logit", {s}, logit);
        if (config_.final_soft_cap > 0) put("/attribution/capped_logit", {s}, capped(last[0].narrow(0, position, 1)));
    }

private:
    void check() const {
        const model::Head& head = stack_.head();
        if (!model_.has_head() || !model_.causal() || config_.encoder)
            refuse("a decoder with a head for the vocabulary", "another model");
        if (head.transform.there() || config_.adaptive || !head.vocabulary.weight.defined())
            refuse("a linear head in float32", "another one");
        if (!config_.pre_norm || config_.residual_after_norm)
            refuse("norms before attention and feed-forward", "norms on the residual stream");
        bool scaled = config_.feed_forward_sum.kept != 1;
        for (const auto& sum : config_.attention_sums) scaled |= sum.kept != 1;
        if (scaled) refuse("a residual stream that is not scaled", "one that is");
        if (options_.answer.empty()) throw Error(ErrorCode::usage, "--answer", "expected tokens", "found none");
        for (const auto* list : {&options_.answer, &options_.against})
            for (const std::int64_t token : *list)
                if (token < 0 || token >= config_.vocabulary)
                    throw Error(ErrorCode::usage, list == &options_.answer ? "--answer" : "--against",
                                "expected tokens from 0 to " + std::to_string(config_.vocabulary - 1),
                                "found " + std::to_string(token));
    }

    /// The logit (difference) as a form of the final norm's output.
    Form unembedding() const {
        const model::Head& head = stack_.head();
        const auto mean = [&](const at::Tensor& rows, const std::vector<std::int64_t>& tokens) {
            return rows.index_select(0, at::tensor(tokens, at::kLong)).to(at::kDouble).mean(0);
        };
        const auto difference = [&](const at::Tensor& rows) {
            const at::Tensor answer = mean(rows, options_.answer);
            return options_.against.empty() ? answer : answer - mean(rows, options_.against);
        };
        at::Tensor weight = difference(head.vocabulary.weight);
        if (head.projection.there()) weight = head.projection.weight.to(at::kDouble).t().mv(weight);
        Form form{weight * head.scale};
        if (head.vocabulary.bias.defined()) form.constant += difference(head.vocabulary.bias).item<double>();
        if (head.logits_bias.defined()) form.constant += difference(head.logits_bias.flatten()).item<double>();
        return form;
    }

    double embedding(std::int64_t s, const Form& form, const at::Tensor& row, std::int64_t position) {
        const model::Embedding& table = stack_.tower().embedding();
        double learned = 0;
        const bool plain = !table.norm.weight.defined() && !table.projection.there();
        if (config_.positions == model::PositionKind::learned && table.positions.defined() && plain)
            learned = form.of(table.positions[config_.position_offset + position]);
        const double all = form.of(row);
        put("/attribution/position_embedding", {s}, learned);
        put("/attribution/embedding", {s}, all - learned);
        return all;
    }

    /// Heads and biases of one attention; their sum.
    double attention(std::int64_t s, const PointKey& key, const Form& stream, const model::Layer& block,
                     const at::Tensor& output, const at::Tensor& mixed) {
        const double all = stream.of(output);
        put("/attribution/attention", {s, key.layer}, all);
        if (!block.output.weight.defined()) return all;  // the mixer projects by itself: its heads are not apart
        const at::Tensor projected = block.output(mixed);
        const model::SumFactors& factors = block.attention_sum;
        const Form form =
            stream.times(config_.update_scale * factors.added).before(block.attention_update_norm, projected);
        const at::Tensor back = block.output.weight.to(at::kDouble).t().mv(form.weight) * mixed.to(at::kDouble);
        const std::int64_t site = site_of(key), heads = model_.sites()[static_cast<std::size_t>(site)].heads;
        const at::Tensor by_head = back.view({heads, -1}).sum(1);
        double sum = 0;
        for (std::int64_t h = 0; h < heads; ++h) {
            const double term = by_head[h].item<double>();
            put("/attribution/head", {s, site, h}, term);
            sum += term;
        }
        double bias = form.constant;
        if (block.output.bias.defined()) bias += form.of(block.output.bias);
        put("/attribution/attention_bias", {s, key.layer}, bias);
        return sum + bias;
    }

    /// The site whose heads the mixer's output is: of a differential layer the difference.
    std::int64_t site_of(const PointKey& key) const {
        const auto& sites = model_.sites();
        for (std::size_t i = 0; i < sites.size(); ++i)
            if (sites[i].layer == key.layer && sites[i].branch == "difference") return static_cast<std::int64_t>(i);
        return key.site;
    }

    double capped(const at::Tensor& hidden) const {
        const at::Tensor logits = model_.logits(hidden).to(at::kDouble)[0];
        const auto mean = [&](const std::vector<std::int64_t>& tokens) {
            return logits.index_select(0, at::tensor(tokens, at::kLong)).mean().item<double>();
        };
        return mean(options_.answer) - (options_.against.empty() ? 0 : mean(options_.against));
    }

    /// Tables that a model has no use for are not added.
    void put(const char* path, const std::vector<std::int64_t>& index, double value) {
        if (record_.find(path)) ask::put(record_, path, index, value);
    }

    model::Model& model_;
    const AttributionOptions& options_;
    store::AskRecord& record_;
    const model::Stack& stack_;
    const model::ModelConfig& config_;
};

}  // namespace

void run_attribution(model::Model& model, const AttributionOptions& options, store::AskRecord& record,
                     Progress& progress, const Cancellation& cancellation) {
    if (record.tables.empty()) {
        const auto texts = [&](const char* name, const char* long_name) {
            record.add_table(std::string("/attribution/") + name, {"/sequence"}, long_name);
        };
        texts("embedding", "term of the token embedding");
        texts("position_embedding", "term of a learned table of positions");
        record.add_table("/attribution/head", {"/sequence", "/site", "/head"}, "term of each head");
        record.add_table("/attribution/attention", {"/sequence", "/layer"}, "heads and bias of each layer");
        record.add_table("/attribution/attention_bias", {"/sequence", "/layer"},
                         "term of the projection's and norm's bias");
        record.add_table("/attribution/feed_forward", {"/sequence", "/layer"}, "term of each feed-forward");
        texts("final_norm_bias", "term of the final norm's bias");
        texts("unembedding_bias", "term of the head's bias");
        texts("total", "sum of all terms");
        texts("logit", "the logit, or difference of logits, before a soft cap");
        if (model.config().final_soft_cap > 0) texts("capped_logit", "the same after the soft cap");
    }
    Attribution attribution(model, options, record);
    for (std::int64_t s = 0; s < std::ssize(record.sequences); ++s) {
        progress.advance(static_cast<double>(s), static_cast<double>(record.sequences.size()),
                         "text " + std::to_string(s + 1) + " of " + std::to_string(record.sequences.size()));
        if (has(record, "/attribution/logit", {s})) continue;
        attribution.sequence(s, cancellation);
        if (options.saved) options.saved();
    }
    record.complete = true;
}

}  // namespace headscope::ask

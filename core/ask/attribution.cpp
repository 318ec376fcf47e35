// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/attribution.h"

#include <cmath>
#include <map>

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include "core/ask/answers.h"
#include "core/ask/cells.h"
#include "core/ask/parts.h"
#include "core/ask/readers.h"
#include "core/ask/sweep.h"
#include "core/base/error.h"
#include "core/model/device.h"
#include "core/model/edits/intervention.h"
#include "core/model/model.h"

namespace headscope::ask {
namespace {

using model::Point;
using model::PointKey;

constexpr std::int64_t kMostMatrixTokens = 2048;  // longest text whose matrices are made, a layer at a time

[[noreturn]] void refuse(const std::string& expected, const std::string& found) {
    throw Error(ErrorCode::unsupported, "ask attribution", "expected " + expected, "found " + found);
}

/// In float64 on the processor, wherever the model is.
at::Tensor doubles(const at::Tensor& numbers) {
    return model::on_processor(numbers).to(at::kDouble);
}

/// A linear form on vectors [d], and a constant: a norm frozen at one input turns it into another.
struct Form {
    at::Tensor weight;  ///< [d] float64
    double constant = 0;

    double of(const at::Tensor& vector) const { return weight.dot(doubles(vector)).item<double>(); }

    /// The form of what enters `norm`, whose input was `input`; the norm's bias joins the constant.
    Form before(const model::Norm& norm, const at::Tensor& input) const {
        if (norm.affine && !norm.weight.defined()) return *this;
        const at::Tensor x = doubles(input);
        at::Tensor gained = weight;
        if (norm.weight.defined()) gained = weight * (doubles(norm.weight) + norm.gain_offset);
        if (norm.kind != model::NormKind::layer) return {gained / (x.square().mean() + norm.epsilon).sqrt(), constant};
        const at::Tensor deviation = ((x - x.mean()).square().mean() + norm.epsilon).sqrt();
        const double bias = norm.bias.defined() ? weight.dot(doubles(norm.bias)).item<double>() : 0;
        return {(gained - gained.mean()) / deviation, constant + bias};
    }
    Form times(double factor) const { return {weight * factor, constant * factor}; }
    /// The constant, which becomes 0: a term of its own.
    double taken_constant() {
        const double own = constant;
        constant = 0;
        return own;
    }
};

/// Values of one position.
struct Row {
    const RunValues& values;
    std::int64_t position;
    const std::map<std::int64_t, at::Tensor>& masses;

    bool has(const PointKey& key) const { return values.contains(key); }
    at::Tensor operator()(const PointKey& key) const { return values.at(key)[0][position]; }
};

/// An attention of a block.
struct Sublayer {
    const mixers::Mixer* mixer;    ///< null: none
    const model::Linear& output;   ///< weight undefined: the mixer's own work
    const model::Norm& norm;       ///< ahead of it, or behind the sum with the stream
    const model::Norm& of_update;  ///< of what is added
    model::SumFactors factors;
    double scale;            ///< of what is added
    at::Tensor value_shift;  ///< bias of the norm ahead of its values; undefined: none
};

class Attribution {
public:
    Attribution(model::Model& model, const AttributionOptions& options, store::AskRecord& record)
        : model_(model),
          options_(options),
          record_(record),
          stack_(stack_of(model)),
          config_(model.config()),
          first_(config_.encoder ? config_.encoder->layers : 0) {
        check();
        const auto layers = stack_.tower().layers();
        for (const PointKey& key : places_of_stack(Point::pattern))
            if (!is_cross(key) && has_value_bias(sublayer(*layers[static_cast<std::size_t>(key.layer - first_)], key)))
                biased_.push_back(key);
    }

    void sequence(std::int64_t s, const Cancellation& cancellation) {
        const store::SequenceTokens& text = record_.sequences[static_cast<std::size_t>(s)];
        const std::int64_t length = std::ssize(text.predicted().ids);
        const std::int64_t position = position_in(options_.position, length, s);
        std::vector<PointKey> places{{Point::embedding, -1, -1}, {Point::hidden, config_.all_layers() - 1, -1}};
        for (const Point point :
             {Point::residual_before, Point::head_output, Point::mixer_output, Point::attention_output,
              Point::residual_middle, Point::feed_forward_input, Point::feed_forward_output})
            for (const PointKey& key : places_of_stack(point)) places.push_back(key);
        at::Tensor last;
        std::map<std::int64_t, at::Tensor> masses;
        ValueReader patterns(length <= kMostMatrixTokens ? biased_ : std::vector<PointKey>(),
                             [&](const PointKey& key, const at::Tensor& pattern) {
                                 masses[key.site] = pattern[0].select(1, position).to(at::kDouble).sum(-1);
                             });
        model::EditorChain chain({options_.editor, &patterns});
        const RunValues values = record_run(model_, text_input(text), places, &chain, cancellation, &last);
        const c10::InferenceMode inference;
        const Row row{values, position, masses};
        Form form = unembedding();
        put("/attribution/unembedding_bias", {s}, form.constant);
        const double logit = form.of(last[0][position]) + form.constant;
        double total = form.taken_constant();
        form = form.before(stack_.tower().final_norm(), row(places[1]));
        put("/attribution/final_norm_bias", {s}, form.constant);
        total += form.taken_constant();
        const auto layers = stack_.tower().layers();
        for (std::int64_t layer = config_.all_layers() - 1; layer >= first_; --layer) {
            const model::Layer& block = *layers[static_cast<std::size_t>(layer - first_)];
            total += feed_forward(s, layer, block, row, form);
            total += attention(s, layer, block, row, form);
        }
        total += embedding(s, form, row(places[0]), position);
        put("/attribution/total", {s}, total);
        put("/attribution/logit", {s}, logit);
        if (config_.final_soft_cap > 0) put("/attribution/capped_logit", {s}, capped(last[0].narrow(0, position, 1)));
    }

private:
    void check() const {
        const model::Head& head = stack_.head();
        if (!model_.has_head() || !model_.causal()) refuse("a decoder with a head for the vocabulary", "another model");
        if (model_.residence() != model::Residence::float32)
            refuse("weights in memory in float32 (--weights float32)", std::string(model::name(model_.residence())));
        if (head.transform.there() || config_.adaptive || !head.vocabulary.weight.defined())
            refuse("a linear head in float32", "another one");
        check_edits();
        if (options_.answer.empty()) throw Error(ErrorCode::usage, "--answer", "expected tokens", "found none");
        for (std::int64_t s = 0; s < std::ssize(record_.sequences); ++s)
            position_in(options_.position, std::ssize(record_.sequences[static_cast<std::size_t>(s)].predicted().ids),
                        s);
        for (const auto* list : {&options_.answer, &options_.against})
            for (const std::int64_t token : *list)
                if (token < 0 || token >= config_.vocabulary)
                    throw Error(ErrorCode::usage, list == &options_.answer ? "--answer" : "--against",
                                "expected tokens from 0 to " + std::to_string(config_.vocabulary - 1),
                                "found " + std::to_string(token));
    }

    /// Terms sum to the logit where edits are of values that a term is made of. One of the stream adds a term of its
    /// own, and one of an attention's output is of no head.
    void check_edits() const {
        if (options_.editor == nullptr) return;
        for (const Point point : {Point::residual_before, Point::attention_output, Point::residual_middle,
                                  Point::hidden, Point::final_norm})
            for (const PointKey& key : places_of_stack(point))
                if (options_.editor->edits(key))
                    refuse("interventions at parts of the stream such as head_output or feed_forward_output",
                           "one at " + std::string(model::name(point)));
    }

    /// The logit (difference) as a form of the final norm's output.
    Form unembedding() const {
        const model::Head& head = stack_.head();
        const auto mean = [&](const at::Tensor& rows, const std::vector<std::int64_t>& tokens) {
            const at::Tensor chosen = at::tensor(tokens, rows.options().dtype(at::kLong));
            return doubles(rows.index_select(0, chosen)).mean(0);
        };
        const auto difference = [&](const at::Tensor& rows) {
            const at::Tensor answer = mean(rows, options_.answer);
            return options_.against.empty() ? answer : answer - mean(rows, options_.against);
        };
        at::Tensor weight = difference(head.vocabulary.weight);
        if (head.projection.there()) weight = doubles(head.projection.weight).t().mv(weight);
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

    /// Moves the form from behind the sum of stream and update to the stream before it, which was `stream`. Constants
    /// of norms on the stream are left in it.
    Form before_sum(const Form& form, const model::SumFactors& factors, const model::Norm& norm,
                    const at::Tensor& stream) const {
        if (config_.parallel_residual) return form;
        const Form kept = form.times(factors.kept);
        return config_.residual_after_norm ? kept.before(norm, stream) : kept;
    }
    /// Moves the form from behind a post-norm to its input, the sum of stream and update.
    Form before_post_norm(const Form& form, const model::SumFactors& factors, const model::Norm& norm,
                          const at::Tensor& stream, const at::Tensor& update) const {
        return config_.pre_norm ? form : form.before(norm, stream.to(at::kDouble) * factors.kept + update);
    }

    /// The term of a layer's feed-forward with its biases. `form` moves from the layer's output to its middle.
    double feed_forward(std::int64_t s, std::int64_t layer, const model::Layer& block, const Row& row, Form& form) {
        const PointKey update{Point::feed_forward_output, layer, -1};
        if (!row.has(update)) return 0;
        const model::SumFactors& factors = config_.feed_forward_sum;
        const PointKey middle{Point::residual_middle, layer, -1};
        const at::Tensor stream = row(row.has(middle) ? middle : PointKey{Point::residual_before, layer, -1});
        form = before_post_norm(form, factors, block.feed_forward_norm, stream, row(update));
        double term = form.of(row(update)) + form.taken_constant();
        if (block.feed_forward.experts.per_token > 0) experts(s, layer, block, row, form);
        form = before_sum(form, factors, block.feed_forward_norm, stream);
        term += form.taken_constant();
        put("/attribution/feed_forward", {s, layer}, term);
        return term;
    }

    /// Parts of a feed-forward's term by expert, and the rest: the expert that every token takes.
    void experts(std::int64_t s, std::int64_t layer, const model::Layer& block, const Row& row, const Form& stream) {
        const PointKey entering{Point::feed_forward_input, layer, -1};
        if (!row.has(entering)) return;
        const model::Experts& all = block.feed_forward.experts;
        const at::Tensor input = block.feed_forward_norm(there(row(entering).unsqueeze(0)));
        model::Routing taken;
        const at::Tensor terms = all.terms(input, taken), whole = block.feed_forward(input)[0];
        const Form form = stream.times(config_.update_scale * config_.feed_forward_sum.added)
                              .before(block.feed_forward_update_norm, whole);
        for (std::int64_t e = 0; e < config_.experts; ++e) put("/attribution/expert", {s, layer, e}, 0);
        double sum = 0;
        for (std::int64_t k = 0; k < all.per_token; ++k) {
            const double term = form.of(terms[k]);
            put("/attribution/expert", {s, layer, taken.chosen[0][k].item<std::int64_t>()}, term);
            sum += term;
        }
        put("/attribution/shared_expert", {s, layer}, block.feed_forward.up.there() ? form.of(whole) - sum : 0);
    }

    /// Heads and biases of a layer's attentions; their sum. `form` moves from the layer's middle to its input.
    double attention(std::int64_t s, std::int64_t layer, const model::Layer& block, const Row& row, Form& form) {
        std::vector<PointKey> places;  // in the order of the computation
        for (const PointKey& key : places_of_stack(Point::attention_output))
            if (key.layer == layer) places.push_back(key);
        if (places.empty()) return 0;
        double sum = 0, biases = 0;
        bool has_heads = false;
        for (auto place = places.rbegin(); place != places.rend(); ++place) {
            const Sublayer part = sublayer(block, *place);
            const at::Tensor output = row(*place), stream = entering(block, row, *place, places.front());
            form = before_post_norm(form, part.factors, part.norm, stream, output);
            double bias = form.taken_constant();
            const Form here = form;
            form = before_sum(form, part.factors, part.norm, stream);
            bias += form.taken_constant();
            sum += here.of(output) + bias;
            biases += bias;
            // A mixer that projects by itself has no heads apart.
            if (!part.output.weight.defined()) continue;
            has_heads = true;
            biases += heads(s, *place, here, part, row);
        }
        put("/attribution/attention", {s, layer}, sum);
        if (has_heads) put("/attribution/attention_bias", {s, layer}, biases);
        return sum;
    }

    /// The stream that an attention's output joins. `own`: the layer's first attention.
    at::Tensor entering(const model::Layer& block, const Row& row, const PointKey& key, const PointKey& own) const {
        const at::Tensor before = row({Point::residual_before, key.layer, -1});
        if (!is_cross(key)) return before;
        const at::Tensor sum = before * block.attention_sum.kept + row(own);
        return config_.pre_norm ? sum : model::on_processor(block.input_norm(there(sum.unsqueeze(0))))[0];
    }

    /// Terms of heads. Returns that of the biases behind them.
    double heads(std::int64_t s, const PointKey& key, const Form& stream, const Sublayer& part, const Row& row) {
        const at::Tensor mixed = row({Point::mixer_output, key.layer, key.site});
        const at::Tensor projected = part.output(there(mixed));
        const Form form = stream.times(part.scale).before(part.of_update, projected);
        const at::Tensor back = doubles(part.output.weight).t().mv(form.weight) * doubles(mixed);
        const std::int64_t site = site_of(key), count = model_.sites()[static_cast<std::size_t>(site)].heads;
        const at::Tensor by_head = back.view({count, -1}).sum(1);
        for (std::int64_t h = 0; h < count; ++h) put("/attribution/head", {s, site, h}, by_head[h].item<double>());
        value_biases(s, key, form, part, row);
        return form.constant + (part.output.bias.defined() ? form.of(part.output.bias) : 0);
    }

    /// The part of each head's term from the value bias and from the input norm's bias: weights that sum to m give m
    /// times both. Nothing for cross-attention, and where the mixer has no such maps or changes the heads' outputs.
    void value_biases(std::int64_t s, const PointKey& key, const Form& form, const Sublayer& part, const Row& row) {
        const PointKey own{Point::head_output, key.layer, key.site};
        const auto maps = part.mixer->head_maps();
        if (is_cross(key) || !maps || maps->output.defined() || !row.has(own)) return;
        const at::Tensor heads = row.values.at(own)[0].select(1, row.position);  // [H, dv]
        if (!heads.flatten().equal(row({Point::mixer_output, key.layer, key.site}))) return;
        const std::int64_t count = heads.size(0), group = count / maps->value.size(0);
        if (!maps->value_bias.defined() && !part.value_shift.defined()) {
            for (std::int64_t h = 0; h < count; ++h) put("/attribution/head_value_bias", {s, key.site, h}, 0);
            return;
        }
        const auto mass = row.masses.find(key.site);
        if (mass == row.masses.end()) return;
        at::Tensor bias = at::zeros({maps->value.size(0), maps->value.size(2)}, at::kDouble);
        if (maps->value_bias.defined()) bias = bias + doubles(maps->value_bias);
        if (part.value_shift.defined()) bias = bias + at::matmul(doubles(part.value_shift), doubles(maps->value));
        const at::Tensor back = doubles(part.output.weight).t().mv(form.weight).view({count, -1});
        for (std::int64_t h = 0; h < count; ++h)
            put("/attribution/head_value_bias", {s, key.site, h},
                mass->second[h].item<double>() * back[h].dot(bias[h / group]).item<double>());
    }

    /// True for a value bias of the attention's own or of its input norm.
    static bool has_value_bias(const Sublayer& part) {
        const auto maps = part.mixer ? part.mixer->head_maps() : std::nullopt;
        return maps && (maps->value_bias.defined() || part.value_shift.defined());
    }

    bool is_cross(const PointKey& key) const { return model_.sites()[static_cast<std::size_t>(key.site)].is_cross(); }

    /// Cross-attention has values of the encoder's output, and no norm or factor of its update.
    Sublayer sublayer(const model::Layer& block, const PointKey& key) const {
        static const model::Norm none{};
        if (is_cross(key)) return {block.cross.get(), block.cross_output, block.cross_norm, none, {}, 1, {}};
        return {block.mixer.get(),
                block.output,
                block.input_norm,
                block.attention_update_norm,
                block.attention_sum,
                config_.update_scale * block.attention_sum.added,
                config_.pre_norm ? block.input_norm.bias : at::Tensor()};
    }

    /// Places of the stack that the head reads: of an encoder-decoder the decoder.
    std::vector<PointKey> places_of_stack(Point point) const {
        std::vector<PointKey> places = model::places_of(point, config_, model_.sites());
        if (config_.encoder)
            std::erase_if(places, [this](const PointKey& place) { return place.layer >= 0 && place.layer < first_; });
        return places;
    }

    /// `values` where the weights are.
    at::Tensor there(const at::Tensor& values) const { return model::on_device(values, model_.device()); }

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
    std::int64_t first_;            ///< layer of the stack's first block
    std::vector<PointKey> biased_;  ///< patterns of layers with a value bias
};

}  // namespace

void run_attribution(model::Model& model, const AttributionOptions& options, store::AskRecord& record,
                     Progress& progress, const Cancellation& cancellation) {
    if (model.config().experts > 0) record.add_dimension("/expert", model.config().experts, "expert, counted from 0");
    if (record.tables.empty()) {
        const auto texts = [&](const char* name, const char* long_name) {
            record.add_table(std::string("/attribution/") + name, {"/sequence"}, long_name);
        };
        texts("embedding", "term of the token embedding");
        texts("position_embedding", "term of a learned table of positions");
        record.add_table("/attribution/head", {"/sequence", "/site", "/head"}, "term of each head");
        record.add_table("/attribution/head_value_bias", {"/sequence", "/site", "/head"},
                         "part of a head's term from the value bias and the input norm's bias");
        record.add_table("/attribution/attention", {"/sequence", "/layer"}, "heads and bias of each layer");
        record.add_table("/attribution/attention_bias", {"/sequence", "/layer"},
                         "term of the projection's and norm's bias");
        record.add_table("/attribution/feed_forward", {"/sequence", "/layer"}, "term of each feed-forward");
        if (model.config().experts > 0) {
            record.add_table("/attribution/expert", {"/sequence", "/layer", "/expert"},
                             "part of the feed-forward's term by expert, 0: not chosen");
            record.add_table("/attribution/shared_expert", {"/sequence", "/layer"},
                             "part of the feed-forward's term of the expert that every token takes");
        }
        texts("final_norm_bias", "term of the final norm's bias");
        texts("unembedding_bias", "term of the head's bias");
        texts("total", "sum of all terms");
        texts("logit", "the logit, or difference of logits, before a soft cap");
        if (model.config().final_soft_cap > 0) texts("capped_logit", "the same after the soft cap");
    }
    Attribution attribution(model, options, record);
    for_open_texts(
        record, static_cast<double>(record.sequences.size()), progress, options.saved,
        [&](std::int64_t s) { return has(record, "/attribution/logit", {s}); },
        [&](std::int64_t s) { attribution.sequence(s, cancellation); });
    record.complete = true;
}

}  // namespace headscope::ask

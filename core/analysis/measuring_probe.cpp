// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/analysis/measuring_probe.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <ATen/ops/sort.h>

#include "core/analysis/dense_rows.h"
#include "core/analysis/value_products.h"
#include "core/model/branches.h"
#include "core/model/residual.h"
#include "kernels/score_pairs.h"

namespace headscope::analysis {
namespace {

constexpr std::array<std::pair<std::string_view, const char*>, 3> state_names{
    {{"query", "q"}, {"key", "k"}, {"value", "v"}}};

/// A mixture of experts: the experts of each token.
bool is_routing(std::string_view name) {
    return name == "expert_index" || name == "expert_weight";
}

bool is_state(std::string_view name) {
    for (const auto& [announced, stored] : state_names) {
        if (name == announced) return true;
    }
    return false;
}

}  // namespace

MeasuringProbe::MeasuringProbe(store::AnalysisWriter& writer, Problems& problems, const store::AnalysisHeader& header,
                               const AnalysisRequest& request, const std::vector<std::int64_t>& sequences,
                               const Cancellation& cancellation)
    : writer_(writer),
      problems_(problems),
      header_(header),
      request_(request),
      sequences_(sequences),
      cancellation_(cancellation) {
    cross_.local_distances = header.local_distances;
    cross_.histogram_row_step = header.row_step();
    kernels::StatisticsRequest self = cross_;
    cross_.cross = true;
    const auto add = [&](const std::string& stream, const std::vector<store::SequenceTokens>& texts) {
        self.tokens.clear();
        for (const std::int64_t s : sequences) {
            const auto& ids = texts[static_cast<std::size_t>(s)].ids;
            self.tokens.insert(self.tokens.end(), ids.begin(), ids.end());
        }
        self_[stream] = self;
    };
    add("tokens", header.sequences);
    for (const auto& [stream, texts] : header.streams) add(stream, texts);
    // The layers of an encoder-decoder are numbered through: its encoder has the first one.
    const bool pair =
        std::any_of(header.sites.begin(), header.sites.end(), [](const Site& site) { return site.stack == "decoder"; });
    first_boundary_ = pair ? "encoder_embedding" : "embedding";
}

bool MeasuringProbe::layer_measured(std::int64_t layer) const {
    return header_.measured_layers.empty() || header_.measured_layers.contains(static_cast<int>(layer));
}

bool MeasuringProbe::wants(std::string_view name, LayerIndex layer) const {
    if (is_routing(name)) return header_.record.experts && layer_measured(layer.value);
    if (name == "token_types") return header_.type_chunk > 0 && layer_measured(layer.value);
    if (name == "head_embeddings") return header_.head_embedding_size > 0 && layer_measured(layer.value);
    if (name == "branch_weights") return header_.record.branches && layer_measured(layer.value);
    if (name == "slopes") return header_.has_slopes && layer_measured(layer.value);
    return model::is_residual(name) || recorded(name, layer);
}

/// True if the file stores any part of it.
bool MeasuringProbe::recorded(std::string_view name, LayerIndex layer) const {
    if (!header_.record.states) return false;
    // A boundary belongs to the layers on both its sides.
    if (name == first_boundary_) {
        // Input of the first layer, which is not layer 0 if that is skipped.
        std::int64_t first = 0;
        while (request_.skip_layers.count(static_cast<int>(first)) != 0) ++first;
        return layer_measured(first);
    }
    if (name == "hidden") return layer_measured(layer.value) || layer_measured(layer.value + 1);
    return is_state(name) && layer_measured(layer.value);
}

void MeasuringProbe::announce(std::string_view name, LayerIndex layer, const at::Tensor& value) {
    if (model::is_residual(name)) problems_.activations(name, layer, value, sequences_);
    if (is_routing(name) && wants(name, layer)) {
        // One layer's: complete before the next layer's arrives.
        if (name == "expert_index")
            experts_ = value;
        else
            write_experts(layer.value, value);
    }
    if (name == "token_types" && wants(name, layer)) write_token_types(layer, value);
    if (name == "head_embeddings" && wants(name, layer)) head_embeddings_ = value;
    if (name == "branch_weights" && wants(name, layer)) write_branch_weights(layer, value);
    if (name == "slopes" && wants(name, layer)) slopes_ = float_values(value);
    if (!recorded(name, layer)) return;
    if (name == first_boundary_)
        write_hidden(0, value);
    else if (name == "hidden")
        write_hidden(layer.value + 1, value);
    else
        states_.insert_or_assign(std::string(name), vector_statistics(value));
}

void MeasuringProbe::write_hidden(std::int64_t boundary, const at::Tensor& value) {
    const VectorStatistics found = vector_statistics(value);
    const auto length = static_cast<std::size_t>(value.size(1));
    for (std::size_t b = 0; b < sequences_.size(); ++b) {
        const auto row = [&](const std::vector<float>& all) { return std::span(all).subspan(b * length, length); };
        writer_.write_hidden_state(sequences_[b], boundary, "hidden_norm", row(found.norm));
        writer_.write_hidden_state(sequences_[b], boundary, "hidden_variance", row(found.variance));
    }
}

void MeasuringProbe::write_experts(std::int64_t layer, const at::Tensor& weight) {
    // A router's order may be another one than that of the weights: a bias of the choice alone.
    const auto [weights, order] = at::sort(weight, true, -1, true);
    const at::Tensor index = experts_.gather(-1, order).to(at::kShort).contiguous();
    experts_.reset();
    const auto size = static_cast<std::size_t>(index.size(1) * index.size(2));
    for (std::size_t b = 0; b < sequences_.size(); ++b) {
        const auto row = static_cast<std::int64_t>(b);
        writer_.write_experts(sequences_[b], layer, {index.select(0, row).const_data_ptr<std::int16_t>(), size},
                              float_values(weights.select(0, row)));
    }
}

void MeasuringProbe::write_token_types(LayerIndex layer, const at::Tensor& types) {
    const std::int64_t site = model::branch_site(header_.sites, layer, "linear"), heads = types.size(1);
    const at::Tensor fractions = model::softmax_fraction(types);
    for (std::size_t b = 0; b < sequences_.size(); ++b) {
        const auto row = static_cast<std::int64_t>(b);
        const at::Tensor own = types.select(0, row).to(at::kChar).contiguous();
        writer_.write_token_types(
            sequences_[b], site, {own.const_data_ptr<std::int8_t>(), static_cast<std::size_t>(own.numel())},
            {fractions.const_data_ptr<double>() + row * heads, static_cast<std::size_t>(heads)}, heads);
    }
}

void MeasuringProbe::write_branch_weights(LayerIndex layer, const at::Tensor& weights) {
    const std::int64_t site = model::branch_site(header_.sites, layer, "softmax");
    for (std::size_t b = 0; b < sequences_.size(); ++b)
        writer_.write_branch_weights(sequences_[b], site,
                                     float_values(weights.select(0, static_cast<std::int64_t>(b))));
}

model::Probe::Implicit MeasuringProbe::implicit_request(SiteIndex site) {
    if (!header_.measured_implicit(header_.sites.at(static_cast<std::size_t>(site.value)))) return Implicit::nothing;
    return header_.record.implicit ? Implicit::weights : Implicit::statistics;
}

void MeasuringProbe::implicit(const model::ImplicitRecord& record) {
    for (std::size_t row = 0; row < sequences_.size(); ++row) {
        const auto b = static_cast<std::int64_t>(row);
        if (header_.record.implicit) {
            const at::Tensor own = record.weights.select(0, b).to(at::kFloat).contiguous();
            writer_.write_implicit(sequences_[row], record.site.value,
                                   {own.const_data_ptr<float>(), static_cast<std::size_t>(own.numel())},
                                   record.deviation);
        }
        writer_.write_implicit_site(sequences_[row], record.site.value, record.statistics, b);
        if (request_.site_done) request_.site_done(sequences_[row], record.site.value);
    }
}

const kernels::StatisticsRequest* MeasuringProbe::request(SiteIndex site) {
    const Site& description = header_.sites.at(static_cast<std::size_t>(site.value));
    if (!header_.measured(description)) return nullptr;
    const bool self = description.is_self() && description.query_stream == description.key_stream;
    return self ? &self_.at(description.query_stream) : &cross_;
}

void MeasuringProbe::measured(const model::AttentionRecord& record) {
    if (header_.record.states) write_states(record);
    // The same for every text: once.
    if (std::find(sequences_.begin(), sequences_.end(), 0) != sequences_.end()) write_parameters(record);
    for (std::size_t row = 0; row < sequences_.size(); ++row) {
        const auto b = static_cast<std::int64_t>(row);
        if (header_.record.maps) write_map(record, b);
        if (header_.record.norms) write_products(record, b);
        if (header_.record.attention) {
            for_dense_rows(record, b, cancellation_,
                           [&](std::int64_t head, std::int64_t first, std::span<const float> rows) {
                               writer_.write_attention_rows(sequences_[row], record.site.value, head, first, rows,
                                                            record.key.size(2));
                           });
        }
        if (const auto regions = header_.regions(sequences_[row], record.description); !regions.empty())
            writer_.write_region_means(sequences_[row], record.site.value,
                                       region_means(record, b, regions, cancellation_));
        problems_.scores(record, b, sequences_[row]);
        writer_.write_site(sequences_[row], record.site.value, record.statistics, b);
        if (request_.site_done) request_.site_done(sequences_[row], record.site.value);
    }
}

void MeasuringProbe::write_states(const model::AttentionRecord& record) {
    for (const auto& [announced, stored] : state_names) {
        const auto found = states_.find(announced);
        if (found == states_.end()) continue;
        const std::int64_t heads = announced == "query" ? record.description.heads : record.description.key_value_heads;
        const VectorStatistics& values = found->second;
        const std::size_t size = values.norm.size() / sequences_.size();  // heads * length
        for (std::size_t b = 0; b < sequences_.size(); ++b) {
            const auto row = [&](const std::vector<float>& all) { return std::span(all).subspan(b * size, size); };
            writer_.write_state(sequences_[b], record.site.value, std::string(stored) + "_norm", row(values.norm),
                                heads);
            writer_.write_state(sequences_[b], record.site.value, std::string(stored) + "_variance",
                                row(values.variance), heads);
        }
    }
    states_.clear();
}

void MeasuringProbe::write_parameters(const model::AttentionRecord& record) {
    const kernels::ScoreRule& rule = record.rule;
    const Site& site = record.description;
    if (site.has_head_embeddings)
        writer_.write_head_embeddings(record.site.value, float_values(std::exchange(head_embeddings_, {})));
    std::vector<float> biases;
    for (std::int64_t h = 0; h < site.heads && site.bias_length > 0; ++h) {
        for (std::int64_t i = 0; i < header_.bias_window; ++i) {
            const std::int64_t distance = header_.bias_first + i;
            const bool own = distance >= site.bias_first && distance < site.bias_first + site.bias_length;
            biases.push_back(own ? kernels::distance_bias(rule, h, -distance)
                                 : std::numeric_limits<float>::quiet_NaN());
        }
    }
    if (!site.has_offsets && !site.has_slopes && biases.empty()) return;
    const std::vector<float>& slopes = rule.slopes.empty() ? slopes_ : rule.slopes;
    writer_.write_parameters(record.site.value, site.has_offsets ? std::span(rule.offsets) : std::span<const float>(),
                             site.has_slopes ? std::span(slopes) : std::span<const float>(), biases);
}

void MeasuringProbe::write_map(const model::AttentionRecord& record, std::int64_t b) {
    const auto size = static_cast<std::size_t>(record.query.size(1) * record.query.size(2));
    const auto constants = std::span(record.statistics.row_constant).subspan(static_cast<std::size_t>(b) * size, size);
    writer_.write_map(sequences_[static_cast<std::size_t>(b)], record.site.value,
                      float_values(record.query.select(0, b)), float_values(record.key.select(0, b)), constants,
                      record.rule, b);
}

void MeasuringProbe::write_products(const model::AttentionRecord& record, std::int64_t b) {
    const std::int64_t heads = record.query.size(1), keys = record.value.size(2);
    // A model that computes what heads say in another way has no such products.
    const std::vector<float> products =
        record.output_projection != nullptr
            ? value_products(record.value.select(0, b), *record.output_projection, heads, cancellation_)
            : std::vector<float>(static_cast<std::size_t>(keys * heads * heads),
                                 std::numeric_limits<float>::quiet_NaN());
    writer_.write_value_products(sequences_[static_cast<std::size_t>(b)], record.site.value, products);
}

}  // namespace headscope::analysis

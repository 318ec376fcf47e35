// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/probe_run.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>

#include "core/model/branches.h"
#include "core/store/analysis/schema.h"
#include "kernels/backend.h"
#include "kernels/indicators.h"
#include "kernels/recurrent.h"
#include "kernels/score_pairs.h"
#include "kernels/statistics.h"

namespace headscope::training {
namespace {

constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kDistances = 4;  ///< of local_focus

class IndicatorProbe final : public model::Probe {
public:
    IndicatorProbe(const model::Model& model, const model::Batch& batch) : sites_(model.sites()) {
        for (const Site& site : sites_) heads_ = std::max<std::size_t>(heads_, static_cast<std::size_t>(site.heads));
        cross_.histogram = false;
        cross_.column_mass = false;
        cross_.thumbnail_size = kProbeThumbnail;
        source_ = with_tokens(cross_, batch.ids);
        if (batch.target.defined()) target_ = with_tokens(cross_, batch.target);
        cross_.cross = true;
        const std::size_t all = sites_.size() * heads_;
        const auto add = [&](const char* name, std::size_t size) {
            result_.indicators.push_back({name, std::vector<double>(size, kAbsent)});
        };
        for (const auto* one : kernels::indicators_of(kernels::IndicatorKind::weights)) add(one->name, all);
        for (const auto* one : kernels::indicators_of(kernels::IndicatorKind::score)) add(one->name, all);
        add("local_focus", all * kDistances);
        add("head_diversity", sites_.size());
        typed_ = std::any_of(sites_.begin(), sites_.end(), [](const Site& site) { return site.type_chunk > 0; });
        if (typed_) add("softmax_fraction", all);
        std::int64_t farthest = -1;
        for (const Site& site : sites_) {
            offsets_ |= site.has_offsets;
            if (site.bias_length > 0)
                farthest = std::max<std::int64_t>(farthest, site.bias_first + site.bias_length - 1);
        }
        if (offsets_) add("offset", all);
        for (const std::int64_t distance : kProbeDistances)
            if (distance <= farthest) add(bias_name(distance).c_str(), all);
        const std::int64_t side = std::min(kProbeThumbnail, batch.ids.size(1));
        result_.thumbnail_size = side;
        result_.thumbnails.assign(all * static_cast<std::size_t>(side * side), std::numeric_limits<float>::quiet_NaN());
    }

    bool wants(std::string_view name, LayerIndex) const override { return typed_ && name == "token_types"; }
    void announce(std::string_view name, LayerIndex layer, const at::Tensor& types) override {
        if (!wants(name, layer)) return;
        const auto site = static_cast<std::size_t>(model::branch_site(sites_, layer, "linear"));
        const at::Tensor fraction = model::softmax_fraction(types);
        const double* values = fraction.const_data_ptr<double>();
        put(values_of("softmax_fraction"), site, types.size(0), types.size(1), {values, values + fraction.numel()}, 1);
    }

    Implicit implicit_request(SiteIndex site) override {
        return sites_.at(static_cast<std::size_t>(site.value)).has_implicit ? Implicit::statistics : Implicit::nothing;
    }
    void implicit(const model::ImplicitRecord& record) override {
        const auto site = static_cast<std::size_t>(record.site.value);
        const std::int64_t heads = record.description.heads;
        const auto batch =
            static_cast<std::int64_t>(record.statistics.entropy.size()) / std::max<std::int64_t>(heads, 1);
        put(values_of("entropy"), site, batch, heads, record.statistics.entropy, 1);
        put(values_of("entropy_row_mean"), site, batch, heads, record.statistics.entropy_row_mean, 1);
        put(values_of("concentration"), site, batch, heads, record.statistics.concentration, 1);
    }

    const kernels::StatisticsRequest* request(SiteIndex site) override {
        const Site& about = sites_.at(static_cast<std::size_t>(site.value));
        if (!about.has_matrix) return nullptr;
        if (about.query_stream != about.key_stream) return &cross_;
        return about.query_stream == "target" ? &target_ : &source_;
    }

    void measured(const model::AttentionRecord& record) override {
        const kernels::Statistics& found = record.statistics;
        const auto site = static_cast<std::size_t>(record.site.value);
        std::size_t at = 0;
        for (const auto* one : kernels::indicators_of(kernels::IndicatorKind::weights))
            put(result_.indicators[at++].values, site, found, found.*one->values, 1);
        for (const auto* one : kernels::indicators_of(kernels::IndicatorKind::score))
            put(result_.indicators[at++].values, site, found, found.*one->values, 1);
        put(result_.indicators[at++].values, site, found, found.local_focus, kDistances);
        double diversity = 0;
        for (const double value : found.head_diversity) diversity += value;
        if (!found.head_diversity.empty())
            result_.indicators[at].values[site] = diversity / static_cast<double>(found.head_diversity.size());
        put_parameters(site, record);
        put_thumbnail(site, found);
    }

    ProbeResult take() { return std::move(result_); }

private:
    static kernels::StatisticsRequest with_tokens(kernels::StatisticsRequest request, const at::Tensor& ids) {
        const at::Tensor plain = ids.contiguous();
        const auto* first = plain.const_data_ptr<std::int64_t>();
        request.tokens.assign(first, first + plain.numel());
        return request;
    }

    std::vector<double>& values_of(std::string_view name) {
        const auto found = std::find_if(result_.indicators.begin(), result_.indicators.end(),
                                        [&](const auto& indicator) { return indicator.name == name; });
        return found->values;
    }

    /// The mean over the batch of `values` [B, heads, width].
    void put(std::vector<double>& to, std::size_t site, const kernels::Statistics& found,
             const std::vector<double>& values, std::size_t width) const {
        put(to, site, found.batch, found.heads, values, width);
    }
    void put(std::vector<double>& to, std::size_t site, std::int64_t rows, std::int64_t of_heads,
             const std::vector<double>& values, std::size_t width) const {
        const auto batch = static_cast<std::size_t>(rows), heads = static_cast<std::size_t>(of_heads);
        if (values.size() < batch * heads * width || batch == 0) return;
        for (std::size_t i = 0; i < heads * width; ++i) {
            double sum = 0;
            for (std::size_t b = 0; b < batch; ++b) sum += values[b * heads * width + i];
            to[site * heads_ * width + i] = sum / static_cast<double>(batch);
        }
    }

    static std::string bias_name(std::int64_t distance) { return "bias_" + std::to_string(distance); }

    void put_parameters(std::size_t site, const model::AttentionRecord& record) {
        const Site& about = record.description;
        for (std::int64_t h = 0; h < about.heads; ++h) {
            const std::size_t at = site * heads_ + static_cast<std::size_t>(h);
            if (about.has_offsets)
                values_of("offset")[at] = double{record.rule.offsets.at(static_cast<std::size_t>(h))};
            for (const std::int64_t distance : kProbeDistances) {
                if (distance < about.bias_first || distance >= about.bias_first + about.bias_length) continue;
                values_of(bias_name(distance))[at] = double{kernels::distance_bias(record.rule, h, -distance)};
            }
        }
    }

    /// Thumbnail of the first sequence.
    void put_thumbnail(std::size_t site, const kernels::Statistics& found) {
        const auto side = result_.thumbnail_size;
        if (found.thumbnail_rows != side || found.thumbnail_columns != side || found.thumbnail_mean.empty()) return;
        const auto one = static_cast<std::size_t>(side * side);
        std::copy_n(found.thumbnail_mean.begin(), one * static_cast<std::size_t>(found.heads),
                    result_.thumbnails.begin() + static_cast<std::ptrdiff_t>(site * heads_ * one));
    }

    const std::vector<Site>& sites_;
    std::size_t heads_ = 0;
    bool offsets_ = false;                                ///< some heads have one
    bool typed_ = false;                                  ///< some layer's tokens have types
    kernels::StatisticsRequest source_, target_, cross_;  ///< of the streams' own attention, and from one to the other
    ProbeResult result_;
};

}  // namespace

ProbeResult measure(model::Model& model, const model::Batch& batch, const Cancellation& cancellation) {
    const auto start = std::chrono::steady_clock::now();
    const c10::InferenceMode inference;
    IndicatorProbe probe(model, batch);
    model::ForwardOptions options;
    options.probe = &probe;
    options.cancellation = &cancellation;
    try {
        model.forward(batch, options);
    } catch (const kernels::Cancelled&) {
        throw Stopped();
    }
    ProbeResult result = probe.take();
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
}

}  // namespace headscope::training

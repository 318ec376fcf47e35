// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/model/probe.h"
#include "kernels/recurrent.h"

namespace headscope::test {

/// Keeps copies of what it wants, and of what each measured site did.
class RecordingProbe final : public model::Probe {
public:
    struct Measured {
        std::int64_t site;
        Site description;
        at::Tensor query, key, value, output;
        kernels::ScoreRule rule;
        kernels::Statistics statistics;
    };

    struct ImplicitMatrix {
        std::int64_t site;
        at::Tensor weights;
        kernels::ImplicitStatistics statistics;
        double deviation;
    };

    /// `names` empty: everything. `measure`: sites ask for statistics, and for their implicit matrix.
    explicit RecordingProbe(bool measure, std::set<std::string> names = {})
        : measure_(measure), names_(std::move(names)) {}

    bool wants(std::string_view name, LayerIndex) const override {
        return names_.empty() || names_.count(std::string(name)) != 0;
    }
    void announce(std::string_view name, LayerIndex layer, const at::Tensor& value) override {
        order.emplace_back(std::string(name), layer.value);
        values[order.back()] = value.clone();
    }
    const kernels::StatisticsRequest* request(SiteIndex) override { return measure_ ? &request_ : nullptr; }
    void measured(const model::AttentionRecord& record) override {
        order.emplace_back("measured", record.site.value);
        sites.push_back({record.site.value, record.description, record.query.clone(), record.key.clone(),
                         record.value.clone(), record.output.clone(), record.rule, record.statistics});
    }

    model::Probe::Implicit implicit_request(SiteIndex) override {
        return measure_ ? model::Probe::Implicit::weights : model::Probe::Implicit::nothing;
    }
    void implicit(const model::ImplicitRecord& record) override {
        order.emplace_back("implicit", record.site.value);
        implicits.push_back({record.site.value, record.weights.clone(), record.statistics, record.deviation});
    }

    const at::Tensor& at(const std::string& name, std::int64_t layer = -1) const { return values.at({name, layer}); }

    std::vector<std::pair<std::string, std::int64_t>> order;
    std::map<std::pair<std::string, std::int64_t>, at::Tensor> values;
    std::vector<Measured> sites;
    std::vector<ImplicitMatrix> implicits;

private:
    bool measure_;
    std::set<std::string> names_;
    kernels::StatisticsRequest request_;
};

}  // namespace headscope::test

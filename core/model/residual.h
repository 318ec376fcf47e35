// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The residual stream as a probe sees it: what layers hand on to each other. Whatever goes wrong in a layer is in it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "core/model/probe.h"

namespace headscope::model {

/// True for the announced names (probe.h) of what runs from layer to layer: embedding, hidden, final norm.
bool is_residual(std::string_view name);

/// First NaN or infinite number of the residual stream [B, L, d].
struct NotFinitePlace {
    std::string name;  ///< for people: "hidden" of layer 3
    std::int64_t row = 0, token = 0;
};

/// The first of them in what is announced; empty: all are finite.
std::optional<NotFinitePlace> not_finite_place(std::string_view name, LayerIndex layer, const at::Tensor& value);

/// Watches passes for the first such place, and measures nothing.
class ResidualProbe final : public Probe {
public:
    const std::optional<NotFinitePlace>& found() const { return found_; }

    bool wants(std::string_view name, LayerIndex) const override { return !found_ && is_residual(name); }
    void announce(std::string_view name, LayerIndex layer, const at::Tensor& value) override {
        if (wants(name, layer)) found_ = not_finite_place(name, layer, value);
    }
    const kernels::StatisticsRequest* request(SiteIndex) override { return nullptr; }
    void measured(const AttentionRecord&) override {}

private:
    std::optional<NotFinitePlace> found_;
};

}  // namespace headscope::model

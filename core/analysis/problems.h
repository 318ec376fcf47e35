// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/indices.h"
#include "core/model/model.h"
#include "core/model/probe.h"

namespace headscope::analysis {

/// NaN and infinite values of a run: weights, the residual stream after each layer, scores and the loss; of each kind
/// the first place, and the number of further ones: places between layers, heads and losses, each counted in every
/// sequence or batch. One thread.
class Problems {
public:
    explicit Problems(const model::Model& model) : weights_(model::weights_problem(model.report())) {}

    /// Something of the residual stream (core/model/residual.h), row b being `sequences[b]`.
    void activations(std::string_view name, LayerIndex layer, const at::Tensor& value,
                     std::span<const std::int64_t> sequences);
    /// One site's statistics of batch row `b`, `sequence`.
    void scores(const model::AttentionRecord& record, std::int64_t b, std::int64_t sequence);
    /// Losses of one sequence, of which the last is none.
    void loss(std::span<const float> loss, std::int64_t sequence);
    /// Rows of logits [n, vocabulary] from the token `first` on, of a model that predicts no next token.
    void logits(const at::Tensor& rows, std::int64_t first, std::int64_t sequence);

    /// A sentence for each kind; none where all is well.
    std::vector<std::string> sentences() const;

private:
    struct Kind {
        std::string first;  ///< place; empty: none
        std::int64_t more = 0;

        void add(const std::string& place);
    };

    std::string weights_;
    Kind activations_, scores_, loss_, logits_;
};

}  // namespace headscope::analysis

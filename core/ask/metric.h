// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Numbers that say how a model answers: the metrics of `headscope ask`. Values are float64. Threads: the compute
// thread.

#include <cstdint>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

namespace headscope::model {
class Model;
}
namespace headscope::store {
struct SequenceTokens;
}

namespace headscope::ask {

enum class MetricKind : std::uint8_t { logit_difference, logit, log_probability, probability, kl, loss };
inline constexpr std::int64_t kMetricKinds = 6;
std::string_view name(MetricKind kind);

struct Metric {
    MetricKind kind = MetricKind::loss;
    std::vector<std::int64_t> answer, against;  ///< tokens
    std::int64_t position = -1;                 ///< negative: from the text's end
    bool all_positions = false;                 ///< mean over the positions
    /// Throws usage for tokens that are missing, not read, or outside the vocabulary, and for a model without a head.
    void check(const model::Model& model) const;
    /// Throws usage for a text without the position, or with too few tokens for a loss. Of an encoder-decoder these are
    /// of the decoder's input.
    void check_texts(const std::vector<store::SequenceTokens>& texts) const;
};

/// A position of a text of `length` tokens, counted from 0; `position` is negative from the text's end. Throws usage
/// for one that the text lacks. `text`: its number, for the message; -1: none.
std::int64_t position_in(std::int64_t position, std::int64_t length, std::int64_t text = -1);

/// Values of a metric for texts of one length. Ids are those that the head predicts successors of: of an
/// encoder-decoder the decoder's input. The loss is of at least 2 tokens: throws usage.
class Measure {
public:
    Measure(model::Model& model, Metric metric);
    /// The one position that the metric reads of texts of `length` tokens; -1: it reads several. Throws usage for one
    /// that the texts do not have.
    std::int64_t only_position(std::int64_t length) const;
    /// `ids` [B, L], `hidden` [B, L, d] after the final norm, or [B, 1, d] of only_position() -> one number per text.
    /// kl needs set_reference().
    std::vector<double> values(const at::Tensor& ids, const at::Tensor& hidden) const;
    /// The same for one text, `hidden` [1, L, d], as a number that autograd records.
    at::Tensor recorded(const at::Tensor& ids, const at::Tensor& hidden) const;
    /// The run that kl compares with: hidden [1, L, d].
    void set_reference(const at::Tensor& hidden);
    bool needs_reference() const { return metric_.kind == MetricKind::kl; }

private:
    /// Hidden states of the metric's positions, [P, d], of all [L, d].
    at::Tensor rows(const at::Tensor& hidden) const;
    /// Logits of these, [P, V] float64.
    at::Tensor logits(const at::Tensor& hidden) const;
    at::Tensor value(const at::Tensor& logits) const;

    model::Model* model_;
    Metric metric_;
    at::Tensor reference_;  ///< [P, V] log-probabilities
};

}  // namespace headscope::ask

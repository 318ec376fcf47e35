// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/analysis/problems.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/checkpoint/not_finite.h"
#include "core/model/residual.h"

namespace headscope::analysis {
namespace {

std::string of_sequence(std::int64_t sequence) {
    return " of sequence " + std::to_string(sequence);
}

}  // namespace

void Problems::Kind::add(const std::string& place) {
    if (first.empty())
        first = place;
    else
        ++more;
}

void Problems::activations(std::string_view name, LayerIndex layer, const at::Tensor& value,
                           std::span<const std::int64_t> sequences) {
    const auto place = model::not_finite_place(name, layer, value);
    if (!place) return;
    activations_.add(place->name + ", token " + std::to_string(place->token) +
                     of_sequence(sequences[static_cast<std::size_t>(place->row)]));
}

void Problems::scores(const model::AttentionRecord& record, std::int64_t b, std::int64_t sequence) {
    const kernels::Statistics& found = record.statistics;
    if (found.score_minimum.empty()) return;
    for (std::int64_t h = 0; h < found.heads; ++h) {
        const auto at = static_cast<std::size_t>(b * found.heads + h);
        if (std::isfinite(found.score_minimum[at]) && std::isfinite(found.score_maximum.at(at))) continue;
        // Without a query that sees a key there are no scores.
        const auto rows =
            std::span(found.row_constant)
                .subspan(at * static_cast<std::size_t>(found.queries), static_cast<std::size_t>(found.queries));
        const auto sees_none = [](float constant) { return constant == std::numeric_limits<float>::infinity(); };
        if (std::all_of(rows.begin(), rows.end(), sees_none)) continue;
        const Site& site = record.description;
        std::string place = "layer " + std::to_string(site.layer) + ", ";
        if (!site.is_self()) place += site.kind + "-attention, ";
        if (!site.branch.empty()) place += site.branch + ", ";
        scores_.add(place + "head " + std::to_string(h) + of_sequence(sequence));
    }
}

void Problems::loss(std::span<const float> loss, std::int64_t sequence) {
    if (loss.empty()) return;
    const auto last = loss.end() - 1;
    const auto found = std::find_if_not(loss.begin(), last, [](float value) { return std::isfinite(value); });
    if (found != last) loss_.add("token " + std::to_string(found - loss.begin()) + of_sequence(sequence));
}

void Problems::logits(const at::Tensor& rows, std::int64_t first, std::int64_t sequence) {
    const std::int64_t found = checkpoint::first_not_finite(rows);
    if (found >= 0) logits_.add("token " + std::to_string(first + found / rows.size(1)) + of_sequence(sequence));
}

std::vector<std::string> Problems::sentences() const {
    std::vector<std::string> all;
    if (!weights_.empty()) all.push_back(weights_);
    const auto add = [&all](const Kind& kind, const std::string& what) {
        if (kind.first.empty()) return;
        all.push_back(what + ": NaN or infinite, first in " + kind.first +
                      (kind.more == 0 ? "" : "; so are " + std::to_string(kind.more) + " more"));
    };
    add(activations_, "activations");
    add(scores_, "scores");
    add(loss_, "loss");
    add(logits_, "logits");
    return all;
}

}  // namespace headscope::analysis

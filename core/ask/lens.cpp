// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/lens.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>

#include "core/ask/answers.h"
#include "core/ask/cells.h"
#include "core/ask/parts.h"
#include "core/ask/sweep.h"
#include "core/base/error.h"
#include "core/model/edits/intervention.h"
#include "core/model/model.h"

namespace headscope::ask {
namespace {

using model::Point;
using model::PointKey;

constexpr std::int64_t kLensNumbers = 8'000'000;  // logits of rows that are in memory together

class Lens {
public:
    Lens(model::Model& model, const LensOptions& options, store::AskRecord& record)
        : model_(model), options_(options), record_(record), boundaries_(record.size_of("/boundary")) {}

    void sequence(std::int64_t s, const Cancellation& cancellation) {
        const store::SequenceTokens& text = record_.sequences[static_cast<std::size_t>(s)];
        const auto& own = text.predicted().ids;
        const std::vector<std::int64_t> tokens(own.begin(), own.end());
        std::vector<PointKey> places = model::places_of(Point::residual_before, model_.config(), model_.sites());
        if (model_.config().encoder)
            std::erase_if(places, [this](const PointKey& place) { return !counts_target(place, model_); });
        places.push_back({Point::hidden, model_.config().all_layers() - 1, -1});
        at::Tensor last;
        const RunValues values = record_run(model_, text_input(text), places, options_.editor, cancellation, &last);
        const std::int64_t rows = std::ssize(tokens);
        const std::int64_t step = std::max<std::int64_t>(1, kLensNumbers / model_.config().vocabulary);
        for (std::int64_t first = 0; first < rows; first += step) {
            const std::int64_t count = std::min(step, rows - first);
            const at::Tensor output = log_probabilities(last[0].narrow(0, first, count));
            for (std::int64_t b = 0; b < boundaries_; ++b) {
                cancellation.check();
                const at::Tensor& stream = values.at(places[static_cast<std::size_t>(b)])[0];
                const at::Tensor mapped = through(b, stream.narrow(0, first, count));
                if (!mapped.defined()) continue;
                const at::Tensor here = b + 1 == boundaries_ ? output : log_probabilities(final_norm(model_, mapped));
                for (std::int64_t i = 0; i < count; ++i) row({s, b, first + i}, tokens, here[i], output[i]);
            }
        }
    }

private:
    struct Place {
        std::int64_t sequence, boundary, position;
    };

    /// Rows of a boundary that the final norm reads; undefined where a fitted lens has no map.
    at::Tensor through(std::int64_t boundary, const at::Tensor& rows) const {
        if (options_.maps == nullptr || boundary + 1 == boundaries_) return rows;
        return options_.maps->mapped(boundary, rows);
    }

    at::Tensor log_probabilities(const at::Tensor& normed) const {
        return at::log_softmax(model_.logits(normed).to(at::kDouble), 1);
    }

    void put(const char* path, const Place& at, double value, std::int64_t column = 0, std::int64_t columns = 1) {
        std::vector<std::int64_t> index{at.sequence, at.boundary, at.position};
        if (columns > 1) index.push_back(column);
        ask::put(record_, path, index, value);
    }

    void row(const Place& at, const std::vector<std::int64_t>& tokens, const at::Tensor& here,
             const at::Tensor& output) {
        const auto [value, index] = at::topk(here, std::min(options_.top, here.size(0)));
        std::vector<std::pair<double, std::int64_t>> best;
        for (std::int64_t k = 0; k < value.size(0); ++k)
            best.emplace_back(-value[k].item<double>(), index[k].item<std::int64_t>());
        std::sort(best.begin(), best.end());
        for (std::size_t k = 0; k < best.size(); ++k) {
            const auto column = static_cast<std::int64_t>(k);
            put("/lens/top_id", at, static_cast<double>(best[k].second), column, options_.top);
            put("/lens/top_probability", at, std::exp(-best[k].first), column, options_.top);
        }
        put("/lens/entropy", at, -(here.exp() * here).nan_to_num(0.0).sum().item<double>());
        put("/lens/kl", at, (output.exp() * (output - here)).nan_to_num(0.0).sum().item<double>());
        std::vector<std::int64_t> targets = options_.target;
        if (targets.empty() && at.position + 1 < std::ssize(tokens))
            targets = {tokens[static_cast<std::size_t>(at.position + 1)]};
        if (targets.empty()) return;
        const at::Tensor wanted = here.index_select(0, at::tensor(targets, at::kLong));
        put("/lens/log_probability", at, wanted.logsumexp(0).item<double>());
        std::int64_t rank = std::numeric_limits<std::int64_t>::max();
        for (const std::int64_t target : targets) {
            const at::Tensor own = here[target];
            const std::int64_t above = here.gt(own).sum().item<std::int64_t>();
            rank = std::min(rank, above + here.narrow(0, 0, target).eq(own).sum().item<std::int64_t>());
        }
        put("/lens/rank", at, static_cast<double>(rank));
    }

    model::Model& model_;
    const LensOptions& options_;
    store::AskRecord& record_;
    std::int64_t boundaries_;
};

}  // namespace

void run_lens(model::Model& model, const LensOptions& options, store::AskRecord& record, Progress& progress,
              const Cancellation& cancellation) {
    if (!model.has_head() || !model.causal())
        throw Error(ErrorCode::usage, "ask lens", "expected a decoder with a head for the vocabulary",
                    "found another model");
    if (model.config().encoder && options.maps != nullptr)
        throw Error(ErrorCode::unsupported, "--kind", "expected logit for an encoder-decoder", "found a fitted lens");
    for (const std::int64_t token : options.target) {
        if (token < 0 || token >= model.config().vocabulary)
            throw Error(ErrorCode::usage, "--target",
                        "expected tokens from 0 to " + std::to_string(model.config().vocabulary - 1),
                        "found " + std::to_string(token));
        if (std::count(options.target.begin(), options.target.end(), token) > 1)
            throw Error(ErrorCode::usage, "--target", "expected each token once",
                        "found " + std::to_string(token) + " twice");
    }
    record.add_dimension("/boundary", model.config().layers + 1,
                         model.config().encoder ? "boundary: input of the decoder's block b; last: output of its blocks"
                                                : "boundary: input of block b; last: output of the blocks");
    record.add_dimension("/top", options.top, "place among the likeliest tokens, from 0");
    if (record.tables.empty()) {
        const std::vector<std::string> cells{"/sequence", "/boundary", "/token"};
        const std::vector<std::string> lists{"/sequence", "/boundary", "/token", "/top"};
        record.add_table("/lens/top_id", lists, "likeliest tokens", store::kTokenUnits, true);
        record.add_table("/lens/top_probability", lists, "their probabilities");
        record.add_table("/lens/log_probability", cells, "natural logarithm of the target's probability");
        record.add_table("/lens/rank", cells, "rank of the target, 0: likeliest", "", true);
        record.add_table("/lens/kl", cells, "KL divergence of the boundary from the output", "nat");
        record.add_table("/lens/entropy", cells, "entropy of the distribution", "nat");
    }
    Lens lens(model, options, record);
    for_open_texts(
        record, static_cast<double>(record.sequences.size()), progress, options.saved,
        [&](std::int64_t s) {
            const std::int64_t last = std::ssize(record.sequences[static_cast<std::size_t>(s)].predicted().ids) - 1;
            return has(record, "/lens/entropy", {s, model.config().layers, last});
        },
        [&](std::int64_t s) { lens.sequence(s, cancellation); });
    record.complete = true;
}

}  // namespace headscope::ask

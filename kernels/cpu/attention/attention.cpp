// SPDX-License-Identifier: GPL-3.0-or-later
// One call: for each sequence pack K, run the first pass over heads and query blocks, then the second, and add up.
#include "kernels/cpu/attention/attention.h"

#include <algorithm>
#include <array>

#include "kernels/backend.h"
#include "kernels/cpu/attention/tasks.h"
#include "kernels/cpu/attention/workspace.h"
#include "kernels/cpu/flush_denormals.h"
#include "kernels/normaliser.h"
#include "kernels/parallel.h"
#include "kernels/score_pairs.h"
#include "kernels/statistics.h"

namespace headscope::kernels {
namespace cpu {
namespace {

constexpr std::int64_t kPackedKeys = 512;  // keys a packing task takes, a multiple of every panel's width

/// Rows of a query block. Depends on shapes alone, so that thread counts change nothing: large enough that reading K
/// and V once a block is small beside the products, small enough that short texts keep threads busy and that the
/// block's queries and outputs, `floats` a row, share a 1 MB second-level cache with the tiles. 96 against 48 rows
/// gained 4 % at 2048 x 8 x 64.
std::int64_t rows_of_block(std::int64_t queries, std::int64_t floats) {
    if (queries >= 2048 && floats <= 1024) return 96;
    if (queries >= 512) return 48;
    return queries >= 96 ? 24 : 12;
}

class Call {
public:
    Call(const AttentionInput& input, OutputView output, const StatisticsRequest* request, Statistics* statistics)
        : input_(input), output_(output), request_(request), out_(statistics) {
        heads_ = input.query.heads;
        queries_ = input.query.length;
        block_rows_ = rows_of_block(queries_, (heads_together() ? heads_ : 1) * (input.query.size + input.value.size));
        blocks_ = (queries_ + block_rows_ - 1) / block_rows_;
        const std::int64_t panel = 2 * target_info().lanes;
        packed_stride_ = (input.key.length + panel - 1) / panel * panel * input.key.size;
        packed_ = AlignedFloats(input.key.heads * packed_stride_);
        const auto rows = static_cast<std::size_t>(heads_ * queries_);
        shift_.resize(rows);
        factor_.resize(rows);
        minimum_.resize(request != nullptr ? rows : 0);
        const auto workers = static_cast<std::size_t>(threads());
        scratch_.resize(workers);
        segments_.resize(workers);
        row_sums_.resize(workers);
    }

    void run(std::int64_t b) {
        SequencePlan plan(input_, b);
        plan.set_packed_keys(packed_.data(), packed_stride_);
        sequence_ = &plan.sequence();
        pack();
        if (request_ == nullptr && traits_of(input_.rule->normaliser).one_pass()) {
            plain(b);
            return;
        }
        SequenceResults results;
        histograms_.assign(request_ != nullptr && request_->histogram ? static_cast<std::size_t>(heads_) : 0, {});
        if (request_ != nullptr) prepare(results);
        first_pass(b, results);
        const Sequence& s = *sequence_;
        ColumnTotals totals(request_ != nullptr ? heads_ : 0, s.query_end, s.key_begin, s.key_end,
                            std::min(thumbnail_size(), s.queries), std::min(thumbnail_size(), s.keys),
                            traits_of(input_.rule->normaliser).is_bounded());
        second_pass(b, results, totals);
        if (request_ == nullptr) return;
        summarise(s, *request_, results, totals, minimum_.data(), b, *out_);
        for (std::size_t h = 0; h < histograms_.size(); ++h) {
            const auto at = (static_cast<std::size_t>(b * heads_) + h) * kHistogramBins;
            std::copy(histograms_[h].begin(), histograms_[h].end(),
                      out_->histogram.begin() + static_cast<std::ptrdiff_t>(at));
        }
    }

private:
    bool wants_columns() const { return request_->column_mass || request_->thumbnails; }
    std::int64_t thumbnail_size() const {
        return request_ != nullptr && request_->thumbnails ? request_->thumbnail_size : 0;
    }
    bool heads_together() const { return request_ != nullptr && request_->head_diversity && heads_ > 1; }

    void prepare(SequenceResults& results) const {
        results.blocks = blocks_;
        results.distances = static_cast<std::int64_t>(request_->local_distances.size());
        const auto sites = static_cast<std::size_t>(heads_ * blocks_);
        results.scores.resize(sites);
        results.weights.resize(sites);
        results.local.resize(sites * request_->local_distances.size());
        if (request_->head_diversity) results.diversity.resize(static_cast<std::size_t>(blocks_));
    }

    void pack() {
        const std::int64_t parts = (input_.key.length + kPackedKeys - 1) / kPackedKeys;
        parallel_for(input_.key.heads * parts, [&](std::int64_t index, int) {
            const std::int64_t begin = index % parts * kPackedKeys;
            pack_keys(
                {sequence_, index / parts, begin, std::min(begin + kPackedKeys, input_.key.length), packed_.data()});
        });
    }

    /// Aligned memory of this worker, at least `floats` long.
    float* scratch(int worker, std::int64_t floats) {
        auto& [size, memory] = scratch_[static_cast<std::size_t>(worker)];
        if (size < floats) {
            memory = AlignedFloats(floats);
            size = floats;
        }
        return memory.data();
    }

    int rows_from(std::int64_t first) const { return static_cast<int>(std::min(block_rows_, queries_ - first)); }

    /// A [B, H, Lq] vector of Statistics at one sequence's start; null if it was not asked for.
    float* at_sequence(std::vector<float>& values, std::int64_t b) const {
        return values.empty() ? nullptr : values.data() + b * heads_ * queries_;
    }

    void plain(std::int64_t b) {
        const std::int64_t floats = plain_scratch(*sequence_, block_rows_);
        parallel_for(output_.data != nullptr ? heads_ * blocks_ : 0, [&](std::int64_t index, int worker) {
            check_cancelled(input_.cancel);
            const FlushDenormals guard;
            const std::int64_t h = index % heads_, first_row = (blocks_ - 1 - index / heads_) * block_rows_;
            PlainTask task;
            task.sequence = sequence_;
            task.normaliser = input_.rule->normaliser;
            task.head = h;
            task.first_row = first_row;
            task.rows = rows_from(first_row);
            task.output = output_.data + b * output_.batch_stride + h * output_.head_stride;
            task.output_stride = output_.row_stride;
            task.scratch = scratch(worker, floats);
            plain_attention(task);
        });
        check_cancelled(input_.cancel);
    }

    void first_pass(std::int64_t b, SequenceResults& results) {
        const bool panel = traits_of(input_.rule->normaliser).sweep == Sweep::panel;
        const std::int64_t floats = pass_one_scratch(*sequence_, block_rows_, panel);
        // Last blocks first: under a causal mask they are the longest.
        parallel_for(heads_ * blocks_, [&](std::int64_t index, int worker) {
            check_cancelled(input_.cancel);
            const FlushDenormals guard;
            const std::int64_t h = index % heads_, block = blocks_ - 1 - index / heads_;
            const auto at = [&](float* base) { return base == nullptr ? nullptr : base + h * queries_; };
            PassOneTask task;
            task.sequence = sequence_;
            task.normaliser = input_.rule->normaliser;
            task.head = h;
            task.first_row = block * block_rows_;
            task.rows = rows_from(task.first_row);
            task.constants = {at(shift_.data()), at(factor_.data()),
                              request_ != nullptr ? at(minimum_.data()) : nullptr};
            if (request_ != nullptr) {
                task.row_constant = at(at_sequence(out_->row_constant, b));
                task.query_entropy = at(at_sequence(out_->query_entropy, b));
                task.query_squares = at(at_sequence(out_->query_square_sum, b));
                task.scores = &results.scores[static_cast<std::size_t>(h * blocks_ + block)];
                if (request_->histogram) task.histogram = &histograms_[static_cast<std::size_t>(h)];
                task.histogram_step = std::max<std::int64_t>(out_->histogram_row_step, 1);
            }
            task.scratch = scratch(worker, floats);
            pass_one(task);
        });
        check_cancelled(input_.cancel);
    }

    void second_pass(std::int64_t b, SequenceResults& results, ColumnTotals& totals) {
        const std::int64_t heads_of_task = heads_together() ? heads_ : 1, parts = heads_ / heads_of_task;
        const std::int64_t floats = pass_two_scratch(*sequence_, block_rows_, heads_of_task);
        std::unique_ptr<TokenRuns> runs;
        if (request_ != nullptr && !request_->tokens.empty()) {
            const auto keys = static_cast<std::size_t>(input_.key.length);
            runs = std::make_unique<TokenRuns>(
                std::span(request_->tokens).subspan(static_cast<std::size_t>(b) * keys, keys), sequence_->key_begin,
                sequence_->key_end);
        }
        parallel_for(parts * blocks_, [&](std::int64_t index, int worker) {
            check_cancelled(input_.cancel);
            const FlushDenormals guard;
            const std::int64_t block = blocks_ - 1 - index / parts;
            PassTwoTask task;
            task.sequence = sequence_;
            task.normaliser = input_.rule->normaliser;
            task.head_begin = index % parts * heads_of_task;
            task.head_end = task.head_begin + heads_of_task;
            task.first_row = block * block_rows_;
            task.rows = rows_from(task.first_row);
            task.constants = {shift_.data(), factor_.data(), minimum_.data()};
            if (output_.data != nullptr) {
                task.output = output_;
                task.output.data += b * output_.batch_stride;
            }
            if (request_ != nullptr) {
                const auto site = static_cast<std::size_t>(block * heads_ + task.head_begin);
                task.weights = &results.weights[site];
                task.local = results.local.data() + site * request_->local_distances.size();
                task.distances = request_->local_distances.data();
                task.distance_count = results.distances;
                if (heads_together()) task.diversity = &results.diversity[static_cast<std::size_t>(block)];
                if (wants_columns()) task.totals = &totals;
                task.tokens = runs.get();
                task.query_entropy = at_sequence(out_->query_entropy, b);
                task.query_squares = at_sequence(out_->query_square_sum, b);
                task.query_sink = at_sequence(out_->query_sink, b);
                task.query_distance = at_sequence(out_->query_mean_distance, b);
                task.segments = &segments_[static_cast<std::size_t>(worker)];
                auto& sums = row_sums_[static_cast<std::size_t>(worker)];
                sums.assign(static_cast<std::size_t>(heads_of_task * task.rows), RowSums{});
                task.row_sums = sums.data();
            }
            task.scratch = scratch(worker, floats);
            pass_two(task);
        });
        check_cancelled(input_.cancel);
    }

    const AttentionInput& input_;
    const OutputView output_;
    const StatisticsRequest* request_;
    Statistics* out_;
    std::int64_t heads_ = 0, queries_ = 0, block_rows_ = 0, blocks_ = 0, packed_stride_ = 0;
    const Sequence* sequence_ = nullptr;
    AlignedFloats packed_;
    std::vector<float> shift_, factor_, minimum_;
    std::vector<HistogramCounts> histograms_;
    std::vector<std::pair<std::int64_t, AlignedFloats>> scratch_;
    std::vector<SegmentLists> segments_;
    std::vector<std::vector<RowSums>> row_sums_;
};

thread_local std::string target_of_last_call;

}  // namespace

std::string last_target() {
    return target_of_last_call;
}

void note_target() {
    target_of_last_call = target_info().name;
}

}  // namespace cpu

void attention_cpu(const AttentionInput& input, OutputView output, const StatisticsRequest* request,
                   Statistics* statistics) {
    if (request != nullptr) prepare_statistics(input, *request, *statistics);
    cpu::Call call(input, output, request, statistics);
    for (std::int64_t b = 0; b < input.query.batch; ++b) call.run(b);
    cpu::note_target();
}

}  // namespace headscope::kernels

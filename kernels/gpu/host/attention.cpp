// SPDX-License-Identifier: GPL-3.0-or-later
// Attention with statistics on a GPU: one call of the plugin for each sequence, and the same summary as the cpu
// backend.
#include <algorithm>
#include <bit>

#include "kernels/backend.h"
#include "kernels/gpu/host/sequence.h"
#include "kernels/gpu/operators.h"
#include "kernels/normaliser.h"
#include "kernels/statistics.h"

namespace headscope::kernels {
namespace gpu {
namespace {

constexpr std::int64_t kPanelBytes = std::int64_t{24} << 20;  ///< of scores that are searched row by row

/// Device memory of the statistics of one sequence, and what becomes of it.
class Measured {
public:
    Measured(Memory& memory, const cpu::Sequence& s, const StatisticsRequest& request, Normaliser normaliser,
             std::int64_t b, Statistics& out)
        : memory_(memory),
          s_(s),
          request_(request),
          b_(b),
          out_(out),
          blocks_((s.queries + HS_BLOCK_QUERIES - 1) / HS_BLOCK_QUERIES),
          tiles_(blocks_ * ((s.keys + HS_BLOCK_QUERIES - 1) / HS_BLOCK_QUERIES)),
          distances_(static_cast<std::int64_t>(request.local_distances.size())),
          totals_(s.heads, s.query_end, s.key_begin, s.key_end, out.thumbnail_rows, out.thumbnail_columns,
                  traits_of(normaliser).is_bounded()) {
        const std::int64_t rows = s.heads * s.queries;
        to_.minimum = memory.take<float>(rows);
        to_.constant = memory.take<float>(rows);
        if (request.per_query)
            for (float** field : {&to_.entropy, &to_.squares, &to_.sink, &to_.distance})
                *field = memory.zeros<float>(rows);
        to_.blocks = memory.zeros<double>(s.heads * blocks_ * fields());
        to_.above = memory.zeros<unsigned long long>(s.heads * 3);
        to_.edges = memory.upload(histogram_edges().data(), kHistogramBins + 1);
        if (request.histogram) to_.histogram = memory.zeros<unsigned long long>(s.heads * kHistogramBins);
        to_.histogram_step = static_cast<std::int32_t>(std::max<std::int64_t>(out.histogram_row_step, 1));
        to_.distances = static_cast<std::int32_t>(distances_);
        const std::vector<std::int32_t> local(request.local_distances.begin(), request.local_distances.end());
        to_.local = memory.upload(local.data(), distances_);
        to_.kept = memory.take<float>(rows * (1 + distances_));
        if (request.head_diversity) to_.diversity = memory.zeros<double>(tiles_);
        to_.columns = memory.zeros<unsigned long long>(s.heads * keys());
        to_.cells = memory.zeros<unsigned long long>(s.heads * cells());
        to_.cell_maxima = memory.zeros<unsigned>(s.heads * cells());
        to_.broken = memory.zeros<unsigned>(s.heads);
        to_.scale = totals_.scale();
        to_.limit = totals_.limit();
        to_.thumbnail_rows = static_cast<std::int32_t>(out.thumbnail_rows);
        to_.thumbnail_columns = static_cast<std::int32_t>(out.thumbnail_columns);
        to_.zeros = memory.zeros<unsigned long long>(s.heads);
        to_.token_sums = memory.zeros<unsigned long long>(s.heads * 2);
        if (!request.tokens.empty()) to_.tokens = memory.upload(request.tokens.data() + b * s.keys, s.keys);
    }

    const HsStatistics* place() const { return &to_; }

    void summarise_all() {
        const std::int64_t rows = s_.heads * s_.queries, at = b_ * rows;
        const std::vector<float> minimum = memory_.fetch(to_.minimum, rows);
        memory_.fetch(to_.constant, rows, out_.row_constant.data() + at);
        if (request_.per_query) {
            memory_.fetch(to_.entropy, rows, out_.query_entropy.data() + at);
            memory_.fetch(to_.squares, rows, out_.query_square_sum.data() + at);
            memory_.fetch(to_.sink, rows, out_.query_sink.data() + at);
            memory_.fetch(to_.distance, rows, out_.query_mean_distance.data() + at);
        }
        if (request_.histogram) {
            const auto counts = memory_.fetch(to_.histogram, s_.heads * kHistogramBins);
            std::copy(counts.begin(), counts.end(), out_.histogram.begin() + b_ * s_.heads * kHistogramBins);
        }
        fetch_totals();
        summarise(s_, request_, results(), totals_, minimum.data(), b_, out_);
    }

private:
    std::int64_t fields() const { return HS_BLOCK_FIELDS + distances_; }
    std::int64_t keys() const { return s_.key_end - s_.key_begin; }
    std::int64_t cells() const { return out_.thumbnail_rows * out_.thumbnail_columns; }

    void fetch_totals() {
        const auto columns = memory_.fetch(to_.columns, s_.heads * keys());
        const auto cell_sums = memory_.fetch(to_.cells, s_.heads * cells());
        const auto maxima = memory_.fetch(to_.cell_maxima, s_.heads * cells());
        broken_ = memory_.fetch(to_.broken, s_.heads);
        std::vector<float> cell_maxima;
        for (const unsigned bits : maxima) cell_maxima.push_back(std::bit_cast<float>(bits));
        totals_.set({columns.begin(), columns.end()}, {cell_sums.begin(), cell_sums.end()}, std::move(cell_maxima),
                    {broken_.begin(), broken_.end()});
    }

    cpu::SequenceResults results() {
        const auto blocks = memory_.fetch(to_.blocks, s_.heads * blocks_ * fields());
        const auto above = memory_.fetch(to_.above, s_.heads * 3);
        const auto zeros = memory_.fetch(to_.zeros, s_.heads);
        const auto tokens = memory_.fetch(to_.token_sums, s_.heads * 2);
        cpu::SequenceResults found;
        found.blocks = blocks_;
        found.distances = distances_;
        found.scores.resize(static_cast<std::size_t>(s_.heads * blocks_));
        found.weights.resize(found.scores.size());
        found.local.resize(found.scores.size() * request_.local_distances.size());
        if (to_.diversity != nullptr) found.diversity = memory_.fetch(to_.diversity, tiles_);
        for (std::int64_t h = 0; h < s_.heads; ++h) {
            for (std::int64_t x = 0; x < blocks_; ++x) {
                const double* from = blocks.data() + (h * blocks_ + x) * fields();
                cpu::BlockScores& scores = found.scores[static_cast<std::size_t>(h * blocks_ + x)];
                cpu::BlockWeights& weights = found.weights[static_cast<std::size_t>(x * s_.heads + h)];
                scores.rows = static_cast<std::int64_t>(from[HS_BLOCK_ROWS]);
                scores.pairs = static_cast<std::int64_t>(from[HS_BLOCK_PAIRS]);
                scores.entropy = from[HS_BLOCK_ENTROPY];
                scores.squares = from[HS_BLOCK_SQUARES];
                scores.mass = from[HS_BLOCK_MASS];
                scores.virtual_sink = from[HS_BLOCK_VIRTUAL];
                scores.sum = from[HS_BLOCK_SUM];
                scores.squared_deviations = from[HS_BLOCK_DEVIATIONS];
                scores.minimum = static_cast<float>(from[HS_BLOCK_MINIMUM]);
                scores.maximum = static_cast<float>(from[HS_BLOCK_MAXIMUM]);
                weights.sink = from[HS_BLOCK_SINK];
                weights.distance = from[HS_BLOCK_DISTANCE];
                std::copy_n(from + HS_BLOCK_FIELDS, distances_, found.local.begin() + (x * s_.heads + h) * distances_);
            }
            add_to_first_block(h, above, zeros, tokens, found);
        }
        return found;
    }

    /// Counts and sums that the device has for whole heads.
    void add_to_first_block(std::int64_t h, const std::vector<unsigned long long>& above,
                            const std::vector<unsigned long long>& zeros, const std::vector<unsigned long long>& tokens,
                            cpu::SequenceResults& found) const {
        const auto head = static_cast<std::size_t>(h);
        cpu::BlockWeights& weights = found.weights[head];
        weights.zeros = static_cast<std::int64_t>(zeros[head]);
        const auto sum = [&](std::size_t n) {
            return broken_[head] != 0
                       ? cpu::kNaN
                       : static_cast<double>(static_cast<std::int64_t>(tokens[2 * head + n])) / totals_.scale();
        };
        weights.duplicate = sum(0);
        weights.induction = sum(1);
        for (std::int64_t x = 0; x < blocks_; ++x) {
            // summarise() reads counts of blocks with pairs alone.
            cpu::BlockScores& scores = found.scores[static_cast<std::size_t>(h * blocks_ + x)];
            if (scores.pairs == 0) continue;
            for (std::size_t k = 0; k < 3; ++k) scores.above[k] = above[head * 3 + k];
            return;
        }
    }

    Memory& memory_;
    const cpu::Sequence& s_;
    const StatisticsRequest& request_;
    std::int64_t b_;
    Statistics& out_;
    std::int64_t blocks_, tiles_, distances_;
    cpu::ColumnTotals totals_;
    std::vector<unsigned> broken_;
    HsStatistics to_{};
};

/// Workspace for normalizers that search whole rows of scores.
void add_panel(Memory& memory, Normaliser normaliser, HsAttention& a) {
    if (traits_of(normaliser).sweep != Sweep::panel) return;
    const std::int64_t all =
        (std::int64_t{a.queries} + HS_BLOCK_QUERIES - 1) / HS_BLOCK_QUERIES * HS_BLOCK_QUERIES * a.heads;
    const std::int64_t fits = kPanelBytes / 4 / a.keys / HS_BLOCK_QUERIES * HS_BLOCK_QUERIES;
    const std::int64_t rows = std::clamp<std::int64_t>(fits, HS_BLOCK_QUERIES, all);
    a.panel = memory.take<float>(rows * a.keys);
    a.panel_rows = static_cast<std::int32_t>(rows);
}

void run(const HsPlugin& library, const AttentionInput& input, const HsAttention& a, const char* where) {
    note_products(library, a);
    const HsCall call = call_of(input.cancel);
    HsOutcome outcome{};
    library.attention(&a, &call, &outcome);
    expect_done(outcome, where);
    library.wait(nullptr, &outcome);
    expect_done(outcome, where);
    check_cancelled(input.cancel);
}

}  // namespace
}  // namespace gpu

void attention_gpu(const AttentionInput& input, OutputView output, const StatisticsRequest* request,
                   Statistics* statistics) {
    constexpr const char* where = "attention";
    const HsPlugin& library = gpu::plugin(where);
    if (library.attention == nullptr) gpu::refuse(where);
    if (request != nullptr) prepare_statistics(input, *request, *statistics);
    const MutableView place{output.data, ElementType::float32, output.batch_stride, output.head_stride,
                            output.row_stride};
    for (std::int64_t b = 0; b < input.query.batch; ++b) {
        const cpu::SequencePlan plan(input, b);
        const cpu::Sequence& s = plan.sequence();
        gpu::Memory memory(library, where);
        HsAttention a = gpu::upload(memory, input, s, b);
        gpu::Result result(memory, place, input.query.device, b, s.heads, s.queries, s.value_size);
        a.output = result.target();
        a.shift = memory.take<float>(s.heads * s.queries);
        a.factor = memory.take<float>(s.heads * s.queries);
        gpu::add_panel(memory, input.rule->normaliser, a);
        if (request == nullptr) {
            gpu::run(library, input, a, where);
        } else {
            gpu::Measured measured(memory, s, *request, input.rule->normaliser, b, *statistics);
            a.statistics = measured.place();
            gpu::run(library, input, a, where);
            measured.summarise_all();
        }
        result.fetch();
    }
}

void attention_forward_gpu(const AttentionInput& input, const MutableView& output, const SoftmaxRows& rows) {
    constexpr const char* where = "attention forward";
    const HsPlugin& library = gpu::plugin(where);
    if (library.attention == nullptr) gpu::refuse(where);
    for (std::int64_t b = 0; b < input.query.batch; ++b) {
        const cpu::SequencePlan plan(input, b);
        const cpu::Sequence& s = plan.sequence();
        gpu::Memory memory(library, where);
        HsAttention a = gpu::upload(memory, input, s, b);
        const Device device = input.query.device;
        gpu::Result result(memory, output, device, b, s.heads, s.queries, s.value_size);
        a.output = result.target();
        // [B, H, Lq] as [B, 1, 1, H Lq].
        const std::int64_t count = s.heads * s.queries;
        gpu::Result shift(memory, {rows.shift, ElementType::float32, count, count, count}, device, b, 1, 1, count);
        gpu::Result factor(memory, {rows.factor, ElementType::float32, count, count, count}, device, b, 1, 1, count);
        a.shift = static_cast<float*>(shift.target().data);
        a.factor = static_cast<float*>(factor.target().data);
        gpu::add_panel(memory, input.rule->normaliser, a);
        gpu::run(library, input, a, where);
        result.fetch();
        shift.fetch();
        factor.fetch();
    }
}

}  // namespace headscope::kernels

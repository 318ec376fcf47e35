// SPDX-License-Identifier: GPL-3.0-or-later
// Recurrent attention on a GPU, one call of the plugin for each sequence.
#include "kernels/recurrent.h"

#include <algorithm>
#include <cmath>

#include "kernels/backend.h"
#include "kernels/check_recurrent.h"
#include "kernels/gpu/host/sequence.h"
#include "kernels/gpu/operators.h"

namespace headscope::kernels {
namespace gpu {
namespace {

static_assert(kRecurrentPiece == HS_RECURRENT_PIECE);
constexpr std::int64_t kMostBandPieces = 8;
constexpr std::int64_t kMostPartNumbers = std::int64_t{4} << 20;  ///< of a gradient that a band adds up from parts

std::int32_t small(std::int64_t x) {
    return static_cast<std::int32_t>(x);  // check_recurrent() has refused larger ones
}

/// First tokens of the pieces, and the length.
std::vector<std::int32_t> piece_begins(const RecurrentRule& rule, std::int64_t length) {
    std::vector<std::int32_t> begins;
    for (std::int64_t t = 0; t < length; t = recurrent_piece_end(rule, t, length)) begins.push_back(small(t));
    begins.push_back(small(length));
    return begins;
}

/// Inputs and rule of sequence b.
HsRecurrent upload_recurrent(Memory& memory, const RecurrentInput& input, std::int64_t b, bool with_value) {
    const RecurrentRule& rule = *input.rule;
    HsRecurrent r{};
    r.query = upload(memory, input.query, b);
    r.key = upload(memory, input.key, b);
    if (with_value) r.value = upload(memory, input.value, b);
    if (input.write.data != nullptr) r.write = upload(memory, input.write, b);
    if (rule.decay != Decay::none) r.log_decay = upload(memory, input.log_decay, b);
    r.heads = small(input.value.heads);
    r.key_heads = small(input.key.heads);
    r.length = small(input.key.length);
    r.tokens = small(recurrent_tokens(rule, b, input.key.length));
    r.key_size = small(input.key.size);
    r.value_size = with_value ? small(input.value.size) : 0;
    r.delta = rule.delta ? 1 : 0;
    r.decay = rule.decay == Decay::none ? HS_DECAY_NONE : rule.decay == Decay::head ? HS_DECAY_HEAD : HS_DECAY_CHANNEL;
    r.scale = static_cast<float>(rule.scale);
    if (rule.chunk_size == 0) return r;
    r.chunk_size = small(rule.chunk_size);
    r.chunk_begin = small(rule.chunk_begin);
    r.chunks = small(rule.chunks);
    r.decays_dropped = rule.decays_dropped ? 1 : 0;
    r.reads_own_chunk = rule.reads_own_chunk ? 1 : 0;
    const std::int64_t chunks = input.value.heads * rule.chunks;
    r.kept = memory.upload(rule.kept.data() + b * chunks, chunks);
    if (rule.decay != Decay::none)
        r.sums = memory.take<float>(input.value.heads * input.key.length *
                                    (rule.decay == Decay::channel ? input.key.size : 1));
    return r;
}

/// Sequence b of a [B, count] array; null stays null.
float* of_sequence(float* all, std::int64_t b, std::int64_t count) {
    return all == nullptr ? nullptr : all + b * count;
}

/// [H, L, size] of sequence b, contiguous float32.
MutableView contiguous(float* all, std::int64_t heads, std::int64_t length, std::int64_t size) {
    return {all, ElementType::float32, heads * length * size, length * size, size};
}

}  // namespace
}  // namespace gpu

void recurrent_forward_gpu(const RecurrentInput& input, const MutableView& output, const RecurrentState& state,
                           float* pieces) {
    constexpr const char* where = "recurrent attention forward";
    const HsPlugin& library = gpu::plugin(where);
    if (library.recurrent_forward == nullptr) gpu::refuse(where);
    const RecurrentRule& rule = *input.rule;
    const Device device = input.key.device;
    const std::int64_t heads = input.value.heads, length = input.key.length;
    const std::int64_t size = heads * input.key.size * input.value.size;
    const std::int64_t decays = heads * (rule.decay == Decay::channel ? input.key.size : 1);
    const std::vector<std::int32_t> begins = gpu::piece_begins(rule, length);
    const auto count = static_cast<std::int64_t>(begins.size()) - 1;
    using Use = gpu::Numbers::Use;
    for (std::int64_t b = 0; b < input.key.batch; ++b) {
        gpu::Memory memory(library, where);
        HsRecurrentForward task{};
        task.r = gpu::upload_recurrent(memory, input, b, /*with_value=*/true);
        gpu::Result result(memory, output, device, b, heads, length, input.value.size);
        task.output = result.target();
        gpu::Numbers now(memory, gpu::of_sequence(state.now, b, size), device, size, Use::change);
        gpu::Numbers start(memory, gpu::of_sequence(state.start, b, size), device, size, Use::change);
        gpu::Numbers sum(memory, gpu::of_sequence(state.decay, b, decays), device, decays, Use::change);
        gpu::Numbers states(memory, gpu::of_sequence(pieces, b, size * count), device, size * count, Use::change);
        task.now = now.data();
        task.start = rule.chunk_size > 0 && start.data() == nullptr ? memory.take<float>(size) : start.data();
        task.decay_sum = sum.data();
        task.r.states = states.data();
        task.r.pieces = gpu::small(count);
        task.r.piece_begins = memory.upload(begins.data(), count + 1);
        gpu::run_entry(library, library.recurrent_forward, task, input.cancel, where);
        result.fetch();
        for (gpu::Numbers* numbers : {&now, &start, &sum, &states}) numbers->fetch();
    }
}

void recurrent_backward_gpu(const RecurrentInput& input, const TensorView& output_gradient, const float* pieces,
                            const RecurrentGradients& gradients) {
    constexpr const char* where = "recurrent attention backward";
    const HsPlugin& library = gpu::plugin(where);
    if (library.recurrent_backward == nullptr) gpu::refuse(where);
    const RecurrentRule& rule = *input.rule;
    const Device device = input.key.device;
    const std::int64_t heads = input.value.heads, length = input.key.length, keys = input.key.size;
    const std::int64_t size = heads * keys * input.value.size;
    const std::int64_t decays = rule.decay == Decay::channel ? keys : 1;
    const std::vector<std::int32_t> begins = gpu::piece_begins(rule, length);
    const auto count = static_cast<std::int64_t>(begins.size()) - 1;
    const std::int64_t parts = heads * ((input.value.size + HS_RECURRENT_COLUMNS - 1) / HS_RECURRENT_COLUMNS);
    const std::int64_t band_pieces =
        std::clamp<std::int64_t>(gpu::kMostPartNumbers / (parts * HS_RECURRENT_PIECE * keys), 1, gpu::kMostBandPieces);
    const std::int64_t band = std::min(band_pieces * HS_RECURRENT_PIECE, length);
    for (std::int64_t b = 0; b < input.key.batch; ++b) {
        gpu::Memory memory(library, where);
        HsRecurrentBackward task{};
        task.r = gpu::upload_recurrent(memory, input, b, /*with_value=*/true);
        const float* own = pieces + b * size * count;
        task.r.states = device == Device::gpu ? const_cast<float*>(own) : memory.upload(own, size * count);
        task.r.pieces = gpu::small(count);
        task.r.piece_begins = memory.upload(begins.data(), count + 1);
        task.host_begins = begins.data();
        task.gradient = gpu::upload(memory, output_gradient, b);
        gpu::Result query(memory, gradients.query, device, b, input.key.heads, length, keys);
        gpu::Result key(memory, gradients.key, device, b, input.key.heads, length, keys);
        gpu::Result value(memory, gradients.value, device, b, heads, length, input.value.size);
        gpu::Result write(memory, gpu::contiguous(gradients.write, heads, length, 1), device, b, heads, length, 1);
        gpu::Result decay(memory, gpu::contiguous(gradients.log_decay, heads, length, decays), device, b, heads, length,
                          decays);
        const std::int64_t chunks = heads * rule.chunks;
        gpu::Numbers kept(memory, gpu::of_sequence(gradients.kept, b, chunks), device, chunks,
                          gpu::Numbers::Use::write);
        task.query = query.target();
        task.key = key.target();
        task.value = value.target();
        task.write = write.target();
        task.log_decay = decay.target();
        task.kept = kept.data();
        task.dropped_too = gradients.dropped_too ? 1 : 0;
        task.band_pieces = gpu::small(band_pieces);
        task.later = memory.zeros<float>(parts * HS_RECURRENT_COLUMNS * keys);
        if (rule.chunk_size > 0) {
            task.start = memory.zeros<float>(parts * HS_RECURRENT_COLUMNS * keys);
            task.carried = memory.zeros<float>(parts * HS_RECURRENT_GROUPS * keys);
            if (task.kept != nullptr) task.kept_parts = memory.zeros<float>(parts * rule.chunks);
        }
        task.trail = memory.take<float>(parts * HS_RECURRENT_PIECE * HS_RECURRENT_COLUMNS * keys);
        if (task.query.data != nullptr) task.query_parts = memory.take<float>(parts * band * keys);
        if (task.key.data != nullptr) task.key_parts = memory.take<float>(parts * band * keys);
        if (task.log_decay.data != nullptr) task.decay_parts = memory.take<float>(parts * band * keys);
        if (task.write.data != nullptr) task.write_parts = memory.take<float>(parts * band);
        gpu::run_entry(library, library.recurrent_backward, task, input.cancel, where);
        for (gpu::Result* result : {&query, &key, &value, &write, &decay}) result->fetch();
        kept.fetch();
    }
}

void implicit_statistics_gpu(const RecurrentInput& input, ImplicitStatistics* statistics, float* dense) {
    constexpr const char* where = "statistics of implicit attention";
    const HsPlugin& library = gpu::plugin(where);
    if (library.implicit == nullptr) gpu::refuse(where);
    *statistics = {};
    const std::int64_t heads = input.value.heads, length = input.key.length, matrix = heads * length * length;
    for (std::int64_t b = 0; b < input.key.batch; ++b) {
        gpu::Memory memory(library, where);
        HsImplicit task{};
        task.r = gpu::upload_recurrent(memory, input, b, /*with_value=*/false);
        if (input.direct != nullptr) task.direct = memory.upload(input.direct, heads);
        // Zeros above the diagonal and in padding.
        task.dense = dense == nullptr ? nullptr : memory.zeros<float>(matrix);
        task.rows = memory.take<double>(heads * length * 3);
        gpu::run_entry(library, library.implicit, task, input.cancel, where);
        if (dense != nullptr) memory.fetch(task.dense, matrix, dense + b * matrix);
        const std::vector<double> rows = memory.fetch(task.rows, heads * length * 3);
        for (std::int64_t h = 0; h < heads; ++h) {
            double entropy = 0.0, squares = 0.0, count = 0.0;
            for (std::int64_t i = 0; i < task.r.tokens; ++i) {
                const double* row = rows.data() + (h * length + i) * 3;
                if (row[0] < 0x1p-126) continue;
                count += 1.0;
                entropy += row[1];
                squares += row[2];
            }
            statistics->entropy.push_back(entropy);
            statistics->entropy_row_mean.push_back(count == 0.0 ? 0.0 : entropy / count);
            statistics->concentration.push_back(std::sqrt(squares));
        }
    }
}

}  // namespace headscope::kernels

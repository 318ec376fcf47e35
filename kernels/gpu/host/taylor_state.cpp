// SPDX-License-Identifier: GPL-3.0-or-later
// Taylor weights in linear time on a GPU. A text that is not continued goes to the attention kernel, pair by pair.
#include "kernels/taylor_state.h"

#include "kernels/backend.h"
#include "kernels/gpu/host/sequence.h"
#include "kernels/gpu/operators.h"
#include "kernels/normaliser.h"

namespace headscope::kernels {
namespace gpu {
namespace {

constexpr const char* kTaylor = "Taylor state";

/// [features, 2] as HsTaylor::numbers.
std::vector<std::int32_t> feature_numbers(Normaliser normaliser, std::int64_t key_size) {
    const auto size = static_cast<std::int32_t>(key_size);
    std::vector<std::int32_t> numbers{-1, -1};
    for (std::int32_t a = 0; a < size; ++a) numbers.insert(numbers.end(), {a, -1});
    for (std::int32_t a = 0; a < size; ++a)
        for (std::int32_t b = a; b < (traits_of(normaliser).diagonal ? a + 1 : size); ++b)
            numbers.insert(numbers.end(), {a, b});
    return numbers;
}

void by_pairs(const HsPlugin& library, const TaylorInput& input, const MutableView& output) {
    if (library.attention == nullptr) refuse(kTaylor);
    ScoreRule rule;
    rule.scale = input.scale;
    rule.normaliser = input.normaliser;
    const AttentionInput pairs{input.query, input.key, input.value, &rule, input.cancel};
    for (std::int64_t b = 0; b < input.query.batch; ++b) {
        const cpu::SequencePlan plan(pairs, b);
        const cpu::Sequence& s = plan.sequence();
        Memory memory(library, kTaylor);
        HsAttention a = upload(memory, pairs, s, b);
        Result result(memory, output, input.query.device, b, s.heads, s.queries, s.value_size);
        a.output = result.target();
        a.shift = memory.take<float>(s.heads * s.queries);
        a.factor = memory.take<float>(s.heads * s.queries);
        run_entry(library, library.attention, a, input.cancel, kTaylor);
        result.fetch();
    }
}

}  // namespace
}  // namespace gpu

void taylor_forward_gpu(const TaylorInput& input, const MutableView& output, float* state) {
    const HsPlugin& library = gpu::plugin(gpu::kTaylor);
    if (library.taylor == nullptr) gpu::refuse(gpu::kTaylor);
    if (state == nullptr) return gpu::by_pairs(library, input, output);
    const Device device = input.query.device;
    const std::int64_t heads = input.query.heads, key_heads = input.key.heads, length = input.query.length;
    const std::int64_t size = input.value.size, features = taylor_features(input.normaliser, input.key.size);
    const std::int64_t rest = features - 1 - input.key.size;
    const std::int64_t segments = (input.key.size + HS_TAYLOR_SEGMENT - 1) / HS_TAYLOR_SEGMENT +
                                  (rest + HS_TAYLOR_SEGMENT - 1) / HS_TAYLOR_SEGMENT;
    const std::vector<std::int32_t> numbers = gpu::feature_numbers(input.normaliser, input.key.size);
    const auto narrow = [](std::int64_t x) { return static_cast<std::int32_t>(x); };
    for (std::int64_t b = 0; b < input.query.batch; ++b) {
        gpu::Memory memory(library, gpu::kTaylor);
        HsTaylor task{};
        task.query = gpu::upload(memory, input.query, b);
        task.key = gpu::upload(memory, input.key, b);
        task.value = gpu::upload(memory, input.value, b);
        task.heads = narrow(heads);
        task.key_heads = narrow(key_heads);
        task.length = narrow(length);
        task.key_size = narrow(input.key.size);
        task.value_size = narrow(size);
        task.normaliser = static_cast<std::int32_t>(input.normaliser);
        task.scale = static_cast<float>(input.scale);
        gpu::Result result(memory, output, device, b, heads, length, size);
        task.output = result.target();
        task.features = narrow(features);
        task.numbers = memory.upload(numbers.data(), 2 * features);
        const std::int64_t count = key_heads * features * (size + 1);
        gpu::Numbers held(memory, state + b * count, device, count, gpu::Numbers::Use::change);
        task.state = held.data();
        task.parts = memory.take<float>(segments * heads * HS_TAYLOR_CHUNK * (size + 1));
        gpu::run_entry(library, library.taylor, task, input.cancel, gpu::kTaylor);
        result.fetch();
        held.fetch();
    }
}

}  // namespace headscope::kernels

// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/gpu/host/sequence.h"

#include "kernels/gpu/host/buffers.h"

namespace headscope::kernels::gpu {
namespace {

std::int32_t narrow(std::int64_t x) {
    return static_cast<std::int32_t>(x);  // check_attention() has refused larger ones
}

}  // namespace

HsCall call_of(const std::atomic<bool>* cancel) {
    HsCall call{};
    if (cancel == nullptr) return call;
    call.self = const_cast<std::atomic<bool>*>(cancel);
    call.cancelled = [](void* self) {
        return static_cast<const std::atomic<bool>*>(self)->load(std::memory_order_relaxed) ? 1 : 0;
    };
    return call;
}

HsMatrix upload(Memory& memory, const TensorView& view, std::int64_t b) {
    const std::int64_t bytes = bytes_of(view.type);
    const char* from = static_cast<const char*>(view.data) + b * view.batch_stride * bytes;
    if (view.device == Device::gpu) return {from, type_of(view.type), view.head_stride, view.row_stride};
    std::vector<char> packed(static_cast<std::size_t>(view.heads * view.length * view.size * bytes));
    char* to = packed.data();
    for (std::int64_t h = 0; h < view.heads; ++h) {
        for (std::int64_t i = 0; i < view.length; ++i, to += view.size * bytes)
            std::memcpy(to, from + (h * view.head_stride + i * view.row_stride) * bytes,
                        static_cast<std::size_t>(view.size * bytes));
    }
    const char* data = memory.upload(packed.data(), static_cast<std::int64_t>(packed.size()));
    return {data, type_of(view.type), view.length * view.size, view.size};
}

HsRule upload(Memory& memory, const cpu::Sequence& s) {
    HsRule rule{};
    rule.query_end = narrow(s.query_end);
    rule.key_begin = narrow(s.key_begin);
    rule.key_end = narrow(s.key_end);
    rule.query_offset = narrow(s.query_offset);
    rule.causal = s.causal ? 1 : 0;
    rule.window_left = narrow(s.window_left);
    rule.window_right = narrow(s.window_right);
    rule.first_keys = narrow(s.first_keys);
    rule.window_segment = narrow(s.window_segment);
    rule.far_distance = narrow(s.far_distance);
    rule.near_begin = narrow(s.near_begin);
    rule.block_size = narrow(s.block_size);
    rule.blocks = narrow(s.blocks);
    rule.own_block = s.own_block ? 1 : 0;
    if (s.visible != nullptr) rule.visible = memory.upload(s.visible, s.heads * s.blocks);
    rule.query_factor = s.query_factor;
    rule.soft_cap = s.soft_cap;
    if (s.relative != nullptr) rule.relative = memory.upload(s.relative, s.heads * s.relative_length);
    rule.relative_length = narrow(s.relative_length);
    rule.relative_zero = narrow(s.relative_zero);
    if (s.sink_logits != nullptr) rule.sink_logits = memory.upload(s.sink_logits, s.heads);
    if (s.offsets != nullptr) rule.offsets = memory.upload(s.offsets, s.heads * s.queries);
    rule.dropout = s.dropout;
    rule.dropout_threshold = s.dropout_threshold;
    rule.dropout_factor = s.dropout_factor;
    return rule;
}

HsAttention upload(Memory& memory, const AttentionInput& input, const cpu::Sequence& s, std::int64_t b) {
    HsAttention a{};
    a.query = upload(memory, input.query, b);
    a.key = upload(memory, input.key, b);
    a.value = upload(memory, input.value, b);
    a.heads = narrow(s.heads);
    a.key_heads = narrow(s.key_heads);
    a.queries = narrow(s.queries);
    a.keys = narrow(s.keys);
    a.key_size = narrow(s.key_size);
    a.value_size = narrow(s.value_size);
    a.normaliser = static_cast<std::int32_t>(input.rule->normaliser);
    a.rule = upload(memory, s);
    return a;
}

void note_products(const HsPlugin& library, const HsAttention& a, bool others_are_halves) {
    if (a.query.type != HS_BFLOAT16) return;
    const bool halves = a.key.type == HS_BFLOAT16 && a.value.type == HS_BFLOAT16 && others_are_halves;
    note_products(halves && library.mma(a.normaliser) != 0 ? "mma" : "fma");
}

Result::Result(Memory& memory, const MutableView& place, Device device, std::int64_t b, std::int64_t heads,
               std::int64_t length, std::int64_t size)
    : memory_(memory), place_(place), b_(b), heads_(heads), length_(length), size_(size) {
    if (place.data == nullptr) return;
    target_.type = type_of(place.type);
    if (device == Device::gpu) {
        target_.data = static_cast<char*>(place.data) + b * place.batch_stride * bytes_of(place.type);
        target_.head_stride = place.head_stride;
        target_.row_stride = place.row_stride;
        return;
    }
    copied_ = true;
    target_.data = memory.take<char>(heads * length * size * bytes_of(place.type));
    target_.head_stride = length * size;
    target_.row_stride = size;
}

void Result::fetch() {
    if (!copied_) return;
    const std::int64_t bytes = bytes_of(place_.type), row = size_ * bytes;
    const std::vector<char> packed = memory_.fetch(static_cast<const char*>(target_.data), heads_ * length_ * row);
    char* to = static_cast<char*>(place_.data) + b_ * place_.batch_stride * bytes;
    for (std::int64_t h = 0; h < heads_; ++h) {
        for (std::int64_t i = 0; i < length_; ++i)
            std::memcpy(to + (h * place_.head_stride + i * place_.row_stride) * bytes,
                        packed.data() + (h * length_ + i) * row, static_cast<std::size_t>(row));
    }
}

Numbers::Numbers(Memory& memory, float* place, Device device, std::int64_t count, Use use)
    : memory_(memory), place_(place), count_(count) {
    if (place == nullptr) return;
    if (device == Device::gpu)
        data_ = place;
    else
        data_ = use == Use::change ? memory.upload(place, count) : memory.zeros<float>(count);
}

void Numbers::fetch() {
    if (place_ != data_) memory_.fetch(data_, count_, place_);
}

}  // namespace headscope::kernels::gpu

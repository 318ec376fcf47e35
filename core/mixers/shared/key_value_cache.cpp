// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/shared/key_value_cache.h"

#include <algorithm>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include "core/mixers/shared/tensor_views.h"

namespace headscope::mixers {
namespace {

constexpr std::int64_t kFirstCapacity = 64;

void grow(at::Tensor& buffer, const at::Tensor& like, std::int64_t held, std::int64_t needed) {
    const std::int64_t capacity = buffer.defined() ? buffer.size(2) : 0;
    if (needed <= capacity) return;
    const std::int64_t wider = std::max({needed, 2 * capacity, kFirstCapacity});
    at::Tensor larger = at::empty({like.size(0), like.size(1), wider, like.size(3)}, like.options());
    if (held > 0) larger.narrow(2, 0, held).copy_(buffer.narrow(2, 0, held));
    buffer = larger;
}

}  // namespace

void KeyValueCache::append(const at::Tensor& key, const at::Tensor& value) {
    const std::int64_t added = key.size(2);
    grow(keys_, key, held_, held_ + added);
    grow(values_, value, held_, held_ + added);
    keys_.narrow(2, held_, added).copy_(key);
    values_.narrow(2, held_, added).copy_(value);
    held_ += added;
}

void KeyValueCache::keep(std::int64_t first, std::int64_t last) {
    const std::int64_t between = held_ - first - last;
    if (between < std::max(last, kFirstCapacity)) return;
    for (at::Tensor* buffer : {&keys_, &values_})
        *buffer = at::cat({buffer->narrow(2, 0, first), buffer->narrow(2, held_ - last, last)}, 2);
    held_ -= between;
    forgotten_ += between;
}

at::Tensor KeyValueCache::key() const {
    return keys_.narrow(2, 0, held_);
}
at::Tensor KeyValueCache::value() const {
    return values_.narrow(2, 0, held_);
}

std::int64_t KeyValueCache::bytes() const {
    return bytes_of(keys_) + bytes_of(values_);
}

KeyValueCache KeyValueCache::copy() const {
    KeyValueCache copy(of_source_);
    if (held_ > 0) copy.append(key(), value());
    copy.forgotten_ = forgotten_;
    return copy;
}

std::unique_ptr<MixerCache> KeyValueCache::clone() const {
    return std::make_unique<KeyValueCache>(copy());
}

std::unique_ptr<MixerCache> KeyValueCache::chosen(const at::Tensor& sequences) const {
    auto copy = std::make_unique<KeyValueCache>(of_source_);
    if (held_ == 0) return copy;
    copy->keys_ = of_sequences(key(), sequences);
    copy->values_ = of_sequences(value(), sequences);
    copy->held_ = held_;
    return copy;
}

}  // namespace headscope::mixers

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/packed/packed_source.h"

#include <algorithm>
#include <utility>

namespace headscope::checkpoint {

TensorInfo packed_info(const std::string& name, PackedSource source) {
    TensorInfo info;
    info.name = name;
    info.type = DataType::f32;
    info.shape = source.tensor->shape();
    if (source.transposed && info.shape.size() > 1)
        std::swap(info.shape.at(info.shape.size() - 1), info.shape.at(info.shape.size() - 2));
    info.elements = source.tensor->rows() * source.tensor->columns();
    info.file = source.parts.front().file;
    info.begin = source.parts.front().begin;
    for (const TensorInfo& part : source.parts) info.bytes += part.bytes;
    info.packed = std::make_shared<const PackedSource>(std::move(source));
    return info;
}

namespace {

/// The bytes of `part` that a part of an entry names.
TensorInfo piece_of(const TensorInfo& part, const PackedPart& piece) {
    TensorInfo info = part;
    info.begin += piece.begin;
    info.bytes = piece.bytes;
    info.elements = static_cast<std::int64_t>(piece.bytes * 8 / static_cast<std::uint64_t>(bits(part.type)));
    info.shape = {info.elements};
    info.checksum.reset();  // of the whole
    return info;
}

std::optional<TensorInfo> packed_entry(const TensorInfo& stack, std::int64_t index) {
    const PackedSource& source = *stack.packed;
    PackedSource own{source.tensor->entry(index), source.transposed, source.type, {}};
    if (!own.tensor) return std::nullopt;
    for (const PackedPart& piece : own.tensor->parts()) {
        const auto part = std::find_if(source.parts.begin(), source.parts.end(),
                                       [&](const TensorInfo& one) { return one.name == piece.tensor; });
        if (part == source.parts.end() || !part->strides.empty()) return std::nullopt;
        own.parts.push_back(piece_of(*part, piece));
    }
    return packed_info(stack.name, std::move(own));
}

}  // namespace

std::optional<TensorInfo> entry_of(const TensorInfo& stack, std::int64_t index) {
    if (stack.shape.size() < 2 || index < 0 || index >= stack.shape[0]) return std::nullopt;
    if (stack.packed) return packed_entry(stack, index);
    const std::int64_t entries = stack.shape[0];
    const auto element = static_cast<std::uint64_t>(bits(stack.type));
    TensorInfo entry = stack;
    entry.shape.erase(entry.shape.begin());
    entry.elements = stack.elements / entries;
    if (static_cast<std::uint64_t>(entry.elements) * element % 8 != 0) return std::nullopt;
    entry.bytes = static_cast<std::uint64_t>(entry.elements) * element / 8;
    const std::int64_t step = stack.strides.empty() ? entry.elements : stack.strides[0];
    if (!stack.strides.empty()) entry.strides.erase(entry.strides.begin());
    entry.begin += static_cast<std::uint64_t>(index) * static_cast<std::uint64_t>(step) * element / 8;
    entry.checksum.reset();
    return entry;
}

}  // namespace headscope::checkpoint

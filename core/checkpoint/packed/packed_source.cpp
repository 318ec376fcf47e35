// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/packed/packed_source.h"

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

}  // namespace headscope::checkpoint

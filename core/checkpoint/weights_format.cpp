// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/weights_format.h"

#include <algorithm>
#include <map>

namespace headscope::checkpoint {
namespace {

std::string format_of(const Checkpoint& file, const TensorInfo& info) {
    constexpr std::string_view blocks = "_blocks";
    switch (info.type) {
        case DataType::f32:
            return "float32";
        case DataType::f16:
            return "float16";
        case DataType::bf16:
            return "bfloat16";
        case DataType::f64:
            return "float64";
        case DataType::u8:
            if (info.name.ends_with(blocks) &&
                file.tensors().contains(info.name.substr(0, info.name.size() - blocks.size()) + "_scales"))
                return "MXFP4";
            break;
        default:
            break;
    }
    return std::string(name(info.type));
}

}  // namespace

std::string weights_format(const Checkpoint& file) {
    std::map<std::string, std::uint64_t> bytes;
    for (const auto& [name, info] : file.tensors()) bytes[format_of(file, info)] += info.bytes;
    const auto most =
        std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == bytes.end() ? "" : most->first;
}

}  // namespace headscope::checkpoint

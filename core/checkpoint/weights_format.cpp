// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/weights_format.h"

#include <algorithm>
#include <map>

namespace headscope::checkpoint {
namespace {

std::string format_of(DataType type) {
    switch (type) {
        case DataType::f32:
            return "float32";
        case DataType::f16:
            return "float16";
        case DataType::bf16:
            return "bfloat16";
        case DataType::f64:
            return "float64";
        default:
            return std::string(name(type));
    }
}

}  // namespace

std::string weights_format(const Checkpoint& file) {
    if (!file.packed_format().empty()) return file.packed_format();
    std::map<DataType, std::uint64_t> bytes;
    for (const auto& [name, info] : file.tensors()) bytes[info.type] += info.bytes;
    const auto most =
        std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == bytes.end() ? "" : format_of(most->first);
}

}  // namespace headscope::checkpoint

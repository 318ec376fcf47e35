// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/safetensors_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <tuple>

#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/checkpoint/data_type.h"
#include "core/checkpoint/safetensors_header.h"

namespace headscope::checkpoint {
namespace {

std::string quoted(const std::string& text) {
    return nlohmann::json(text).dump();
}

std::uint64_t checked_bytes(const TensorPlan& tensor, const std::string& where) {
    std::int64_t elements = 0;
    const auto bits = checked_bits(tensor.shape, tensor.type, elements);
    if (bits && *bits % 8 == 0) return *bits / 8;
    throw Error(ErrorCode::usage, where + ", tensor \"" + escaped(tensor.name) + '"',
                "expected a shape of a whole number of bytes", "found another");
}

void check_name(const TensorPlan& tensor, std::set<std::string>& names, const std::string& where) {
    const bool valid = tensor.name != "__metadata__" && find_invalid_utf8(tensor.name) == std::string_view::npos;
    if (valid && names.insert(tensor.name).second) return;
    throw Error(ErrorCode::usage, where, "expected tensor names in UTF-8, each once",
                "found \"" + escaped(tensor.name) + '"' + (valid ? " again" : ""));
}

}  // namespace

std::vector<std::size_t> file_order(const std::vector<TensorPlan>& tensors) {
    std::vector<std::size_t> order(tensors.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return std::forward_as_tuple(-static_cast<int>(tensors[a].type), tensors[a].name) <
               std::forward_as_tuple(-static_cast<int>(tensors[b].type), tensors[b].name);
    });
    return order;
}

SafetensorsWriter::SafetensorsWriter(OutputFile& file, const std::vector<TensorPlan>& tensors,
                                     const std::map<std::string, std::string>& metadata)
    : file_(file) {
    const std::string where = shown(file.target());
    std::string header = "{";
    if (!metadata.empty()) header += R"("__metadata__":)" + nlohmann::json(metadata).dump();
    std::set<std::string> names;
    std::uint64_t offset = 0;
    for (const TensorPlan& tensor : tensors) {
        check_name(tensor, names, where);
        const std::uint64_t end = offset + checked_bytes(tensor, where);
        if (header.size() > 1) header += ',';
        header += quoted(tensor.name) + R"(:{"dtype":")" + std::string(name(tensor.type)) + R"(","shape":)" +
                  nlohmann::json(tensor.shape).dump() + R"(,"data_offsets":[)" + std::to_string(offset) + ',' +
                  std::to_string(end) + "]}";
        offset = end;
    }
    header += '}';
    header.resize((header.size() + 7) / 8 * 8, ' ');
    if (header.size() > largest_header) {
        throw Error(ErrorCode::limit, where, "expected a header of at most " + size_text(largest_header),
                    "found " + size_text(header.size()));
    }
    const std::uint64_t length = header.size();
    announced_ = 8 + length + offset;
    put(&length, sizeof length);
    put(header.data(), header.size());
}

void SafetensorsWriter::append(const void* bytes, std::size_t size) {
    if (size > announced_ - written_) {
        throw Error(ErrorCode::internal, shown(file_.target()), "expected the tensors' bytes", "found more");
    }
    put(bytes, size);
}

void SafetensorsWriter::put(const void* bytes, std::size_t size) {
    file_.append(bytes, size);
    hash_.update(bytes, size);
    written_ += size;
}

std::string SafetensorsWriter::finish() {
    if (written_ != announced_) {
        throw Error(ErrorCode::internal, shown(file_.target()), "expected the tensors' bytes", "found fewer");
    }
    return hash_.finish();
}

}  // namespace headscope::checkpoint

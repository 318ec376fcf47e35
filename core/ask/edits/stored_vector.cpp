// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/edits/stored_vector.h"

#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/io/output_file.h"
#include "core/base/text/text.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/gguf/gguf.h"

namespace headscope::ask {
namespace {

constexpr std::string_view kDirection = "direction.";

StoredVectors directions(const InputFile& file, const std::string& key) {
    using checkpoint::gguf::BlockType;
    const std::string where = file.path().filename().string();
    if (!key.empty())
        throw Error(ErrorCode::usage, where, "expected no key: each layer takes its own direction", "found " + key);
    StoredVectors found;
    for (const auto& [name, tensor] : checkpoint::gguf::read_header(file).tensors) {
        std::int64_t layer = -1;
        const char* const end = name.data() + name.size();
        const bool direction = name.starts_with(kDirection) &&
                               std::from_chars(name.data() + kDirection.size(), end, layer).ptr == end && layer >= 1;
        if (!direction || tensor.type != BlockType::f32 || tensor.shape.size() != 1)
            throw Error(ErrorCode::format, where, "expected float32 vectors direction.1, direction.2, ..",
                        "found " + escaped(name));
        const at::Tensor vector = at::empty({tensor.shape[0]}, at::kFloat);
        file.read(tensor.begin, vector.mutable_data_ptr(), static_cast<std::size_t>(tensor.bytes));
        found.by_layer[layer] = vector;
    }
    if (found.by_layer.empty()) throw Error(ErrorCode::format, where, "expected direction.1, ..", "found no tensor");
    return found;
}

/// Parts of a GGUF file: little-endian numbers, strings behind their lengths.
struct GgufBytes {
    std::string bytes;

    template <class Number>
    void number(Number value) {
        for (std::size_t i = 0; i < sizeof value; ++i)
            bytes += static_cast<char>((static_cast<std::uint64_t>(value) >> (8 * i)) & 0xFFU);
    }
    void text(const std::string& value) {
        number(static_cast<std::uint64_t>(value.size()));
        bytes += value;
    }
    void key(const std::string& name, checkpoint::gguf::ValueType type) {
        text(name);
        number(static_cast<std::uint32_t>(type));
    }
    /// Zeros up to the next multiple of the usual alignment, 32.
    void pad() { bytes.resize((bytes.size() + 31) / 32 * 32); }
};

}  // namespace

void write_control_vector(const std::filesystem::path& path, const std::map<std::int64_t, at::Tensor>& by_layer,
                          const std::string& hint, std::span<const std::filesystem::path> inputs) {
    using checkpoint::gguf::BlockType;
    using checkpoint::gguf::ValueType;
    std::vector<std::pair<std::string, at::Tensor>> directions;
    for (const auto& [layer, vector] : by_layer)
        if (layer >= 1)
            directions.emplace_back(std::string(kDirection) + std::to_string(layer),
                                    vector.to(at::kFloat).contiguous());
    if (directions.empty())
        throw Error(ErrorCode::usage, path.filename().string(), "expected vectors of layers from 1 on", "found none");
    GgufBytes header;
    header.bytes = "GGUF";
    header.number(std::uint32_t{3});  // version
    header.number(static_cast<std::uint64_t>(directions.size()));
    header.number(std::uint64_t{3});  // keys
    header.key("general.architecture", ValueType::string);
    header.text("controlvector");
    header.key("controlvector.model_hint", ValueType::string);
    header.text(hint);
    header.key("controlvector.layer_count", ValueType::i32);
    header.number(static_cast<std::int32_t>(directions.size()));
    GgufBytes data;
    for (const auto& [name, vector] : directions) {
        header.text(name);
        header.number(std::uint32_t{1});  // axes
        header.number(static_cast<std::uint64_t>(vector.numel()));
        header.number(static_cast<std::uint32_t>(BlockType::f32));
        header.number(static_cast<std::uint64_t>(data.bytes.size()));
        data.bytes.append(static_cast<const char*>(vector.const_data_ptr()), static_cast<std::size_t>(vector.nbytes()));
        data.pad();
    }
    header.pad();
    OutputFile file(path, inputs, "control vector");
    file.append(header.bytes);
    file.append(data.bytes);
    file.publish();
}

StoredVectors read_vectors(const std::filesystem::path& path, const std::string& key) {
    const InputFile file(path, "vector file");
    if (checkpoint::is_gguf(file)) return directions(file, key);
    const auto stored = checkpoint::Checkpoint::open(path);
    std::vector<std::string> names;
    for (const auto& [name, info] : stored->tensors()) names.push_back(name);
    if (key.empty() && names.size() != 1)
        throw Error(ErrorCode::usage, path.filename().string(),
                    "expected key = the name of a tensor: " + list_text(names, 8), "found none");
    return {stored->load(key.empty() ? names.front() : key, checkpoint::LoadAs::float32), {}};
}

}  // namespace headscope::ask

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/edits/stored_vector.h"

#include <charconv>
#include <string_view>

#include <ATen/ops/empty.h>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
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

}  // namespace

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

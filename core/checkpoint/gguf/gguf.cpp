// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/gguf/gguf.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/process/os_error.h"
#include "core/checkpoint/gguf/architectures/architecture.h"

namespace headscope::checkpoint {
namespace gguf {
namespace {

/// bos_token_id and the like, which generation reads.
void read_tokens(const Metadata& metadata, nlohmann::json& config) {
    KeyReader keys(metadata);
    const auto read = [&](const std::string& name) -> nlohmann::json {
        const std::string key = "tokenizer.ggml." + name;
        if (!keys.has(key)) return nullptr;
        const std::int64_t id = keys.integer(key, -1, kLargestSize);
        return id < 0 ? nlohmann::json() : nlohmann::json(id);
    };
    for (const char* name : {"bos_token_id", "eos_token_id"}) config[name] = read(name);
    config["pad_token_id"] = read("padding_token_id");
    // The ends of a turn and of a message end an answer too.
    nlohmann::json& ends = config["eos_token_id"];
    for (const char* name : {"eot_token_id", "eom_token_id"}) {
        const nlohmann::json last = read(name);
        if (last.is_null() || last == ends) continue;
        if (ends.is_null())
            ends = nlohmann::json::array({last});
        else if (!ends.is_array())
            ends = nlohmann::json::array({ends, last});
        else if (std::find(ends.begin(), ends.end(), last) == ends.end())
            ends.push_back(last);
    }
}

/// Type with the most bytes; F32 if there is no other.
std::string format_of(const std::map<std::string, Tensor>& stored) {
    std::map<BlockType, std::uint64_t> bytes;
    for (const auto& [name, tensor] : stored) bytes[tensor.type] += tensor.bytes;
    const auto most = std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) {
        const bool plain_a = a.first == BlockType::f32, plain_b = b.first == BlockType::f32;
        return plain_a != plain_b ? plain_a : a.second < b.second;
    });
    return most == bytes.end() ? "GGUF" : "GGUF " + std::string(name(most->first));
}

void expect_model(KeyReader& keys) {
    const std::string type = keys.text_or("general.type", "model");
    if (type != "model")
        keys.refuse(ErrorCode::unsupported, "general.type", "expected a model, not an adapter or a part of one");
}

}  // namespace
}  // namespace gguf

bool is_gguf(const InputFile& file) {
    char magic[4] = {};
    if (file.size() < sizeof magic) return false;
    file.read(0, magic, sizeof magic);
    return std::memcmp(magic, "GGUF", sizeof magic) == 0;
}

GgufModel open_gguf(const std::filesystem::path& path) {
    try {
        gguf::Files files = gguf::open_files(path);
        GgufModel model;
        model.files = std::move(files.files);
        model.metadata = std::move(files.metadata);
        model.stored = std::move(files.tensors);
        gguf::KeyReader keys(model.metadata);
        gguf::expect_model(keys);
        const std::string name = keys.text("general.architecture");
        const gguf::Architecture* architecture = gguf::find_architecture(name);
        if (architecture == nullptr) {
            keys.refuse(ErrorCode::unsupported, "general.architecture",
                        "expected one of " + gguf::known_architectures());
        }
        model.config = nlohmann::json::object();
        gguf::ModelBuilder builder(model, name);
        architecture->build(builder);
        builder.finish();
        gguf::read_tokens(model.metadata, model.config);
        model.format = gguf::format_of(model.stored);
        return model;
    } catch (...) {
        throw current_error(shown(path));
    }
}

}  // namespace headscope::checkpoint

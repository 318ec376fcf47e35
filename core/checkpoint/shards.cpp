// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/shards.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/json.h"
#include "core/base/os_error.h"
#include "core/base/text.h"
#include "core/checkpoint/recognise.h"
#include "core/checkpoint/safetensors_header.h"

namespace headscope::checkpoint {
namespace {

constexpr std::uint64_t largest_index = 32U << 20U;  // the largest models' have 15 MB
constexpr std::size_t most_shards = 4096;

using ShardNames = std::map<std::string, std::vector<std::string>>;  // file -> its tensors

ShardNames read_index(const std::filesystem::path& path) {
    const nlohmann::json document = read_json_file(path, largest_index, "index of shards");
    if (!document.is_object() || !document.contains("weight_map")) {
        throw Error(ErrorCode::format, shown(path),
                    "expected a checkpoint: a folder, a .safetensors file or an index of shards",
                    "found a JSON file without a weight_map");
    }
    const JsonView map = JsonView(document, shown(path)).object().at("weight_map").object();
    ShardNames shards;
    for (const auto& [tensor, file] : map.value().get_ref<const nlohmann::json::object_t&>()) {
        const auto* name = file.get_ptr<const std::string*>();
        if (name == nullptr || !is_base_name(*name)) {
            map.at(tensor).refuse(ErrorCode::format, "expected the plain name of a file in the index's folder");
        }
        shards[*name].push_back(tensor);
    }
    if (shards.empty()) map.refuse(ErrorCode::format, "expected at least one tensor");
    if (shards.size() > most_shards) {
        throw Error(ErrorCode::limit, map.where(), "expected at most " + std::to_string(most_shards) + " shards",
                    "found " + std::to_string(shards.size()));
    }
    return shards;
}

void require_all(const ShardNames& shards, const std::filesystem::path& index) {
    std::vector<std::string> missing;
    for (const auto& [name, tensors] : shards) {
        if (!ends_at_regular_file(index.parent_path() / name)) missing.push_back(name);
    }
    if (missing.empty()) return;
    throw Error(ErrorCode::io, shown(index),
                "expected all of its " + std::to_string(shards.size()) + " shards as regular files beside it",
                "found no " + list_text(missing));
}

}  // namespace

bool is_base_name(std::string_view name) {
    using namespace std::string_view_literals;
    return !name.empty() && name != "." && name != ".." && name.find_first_of("/\\\0"sv) == std::string_view::npos;
}

Weights open_single(const std::filesystem::path& path) {
    Weights weights;
    weights.files.emplace_back(path, "weight file");
    require_safetensors(weights.files.front());
    weights.tensors = read_safetensors_header(weights.files.front()).tensors;
    return weights;
}

Weights open_sharded(const std::filesystem::path& index) {
    const ShardNames shards = read_index(index);
    require_all(shards, index);
    Weights weights;
    weights.files.reserve(shards.size());
    for (const auto& [name, wanted] : shards) {
        const std::size_t number = weights.files.size();
        const InputFile& file = weights.files.emplace_back(index.parent_path() / name, "shard");
        require_safetensors(file);
        std::map<std::string, TensorInfo> found = read_safetensors_header(file).tensors;
        std::vector<std::string> missing;
        for (const std::string& tensor : wanted) {
            auto node = found.extract(tensor);
            if (node.empty()) {
                missing.push_back(tensor);
                continue;
            }
            node.mapped().file = number;
            weights.tensors.insert(std::move(node));
        }
        if (!missing.empty()) {
            throw Error(ErrorCode::mismatch, shown(file.path()), "expected every tensor that the index puts there",
                        "found no " + list_text(missing));
        }
        if (!found.empty()) {
            std::vector<std::string> extra;
            for (const auto& [tensor, info] : found) extra.push_back(tensor);
            throw Error(ErrorCode::mismatch, shown(file.path()), "expected only tensors that the index puts there",
                        "found also " + list_text(extra));
        }
    }
    return weights;
}

}  // namespace headscope::checkpoint

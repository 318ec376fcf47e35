// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/packed/open_packed.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include "core/base/json/json.h"
#include "core/checkpoint/packed/find_packed.h"
#include "core/checkpoint/packed/packed_source.h"
#include "core/checkpoint/tensor_reader.h"

namespace headscope::checkpoint {
namespace {

constexpr std::uint64_t kLargestSettings = 1U << 20U;

/// quantize_config.json of older GPTQ folders, quant_config.json of AWQ's.
std::optional<std::pair<nlohmann::json, std::string>> companion_in(const std::filesystem::path& folder) {
    for (const char* name : {"quantize_config.json", "quant_config.json"}) {
        if (const auto path = folder / name; ends_at_regular_file(path))
            return std::pair(read_json_file(path, kLargestSettings, "quantization settings"), std::string(name));
    }
    return std::nullopt;
}

std::vector<std::byte> bytes_of(const InputFile& file, const TensorInfo& info) {
    const at::Tensor numbers = load_tensor(file, info, info.type, Cancellation());
    const auto* bytes = static_cast<const std::byte*>(numbers.const_data_ptr());
    return {bytes, bytes + numbers.nbytes()};
}

/// The model that results is not quantized.
void forget_settings(nlohmann::json& config) {
    for (const char* key : {"quantization", "quantization_config", "compression_config"}) config.erase(key);
    if (const auto text = config.find("text_config"); text != config.end() && text->is_object()) forget_settings(*text);
}

std::string largest_type(const std::vector<TensorInfo>& parts) {
    const auto most =
        std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    return std::string(name(most->type));
}

}  // namespace

std::string unpack_names(nlohmann::json& config, const std::filesystem::path& folder,
                         const std::vector<InputFile>& files, std::map<std::string, TensorInfo>& tensors) {
    const auto read = [&](const std::string& tensor) {
        const TensorInfo& info = tensors.at(tensor);
        return bytes_of(files.at(info.file), info);
    };
    const auto companion = companion_in(folder);
    std::optional<JsonView> settings;
    if (companion) settings.emplace(companion->first, companion->second);
    const auto found = find_packed(config, settings ? &*settings : nullptr, tensors, read);
    forget_settings(config);
    if (!found) return "";
    std::map<std::string, TensorInfo> made;
    for (const auto& [name, tensor] : found->tensors) {
        PackedSource source{tensor, false, "", {}};
        for (const PackedPart& part : tensor->parts()) source.parts.push_back(tensors.at(part.tensor));
        source.type = largest_type(source.parts);
        source.transposed = tensor->shape().size() == 3 && found->consumed.contains(name + "_blocks");
        made.emplace(name, packed_info(name, std::move(source)));
    }
    for (const std::string& part : found->consumed) tensors.erase(part);
    for (auto& [name, info] : made) tensors.insert_or_assign(name, std::move(info));
    return found->format;
}

}  // namespace headscope::checkpoint

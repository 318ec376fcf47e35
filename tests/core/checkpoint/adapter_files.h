// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/base/temporary_folder.h"
#include "tests/core/checkpoint/hostile.h"

namespace headscope::test {

using Shapes = std::vector<std::pair<std::string, std::vector<int>>>;

/// A safetensors file of float32 tensors; the elements of all of them are 1, 2, 3, ...
inline std::string counting_safetensors(const Shapes& shapes) {
    std::string header, data;
    float next = 1;
    for (const auto& [name, shape] : shapes) {
        std::string sizes;
        int count = 1;
        for (const int size : shape) {
            sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
            count *= size;
        }
        const std::size_t begin = data.size();
        for (int i = 0; i < count; ++i, ++next) data.append(reinterpret_cast<const char*>(&next), sizeof next);
        header +=
            (header.empty() ? "" : ",") + entry(name, "F32", "[" + sizes + "]",
                                                "[" + std::to_string(begin) + "," + std::to_string(data.size()) + "]");
    }
    return safetensors_bytes("{" + header + "}", data);
}

/// An adapter's folder as PEFT leaves it, made if it is not there. `keys` follow "peft_type" in its configuration.
inline void write_adapter(
    const std::filesystem::path& folder, const Shapes& shapes,
    const std::string& keys = R"("r": 1, "lora_alpha": 2, "base_model_name_or_path": "some/base")",
    const std::string& type = "LORA") {
    std::filesystem::create_directories(folder);
    write_file(folder / "adapter_config.json",
               R"({"peft_type": ")" + type + '"' + (keys.empty() ? "" : ", " + keys) + "}");
    write_file(folder / "adapter_model.safetensors", counting_safetensors(shapes));
}

}  // namespace headscope::test

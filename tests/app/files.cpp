// SPDX-License-Identifier: GPL-3.0-or-later
#include "files.h"
#include "tests/oracle/golden.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace headscope::testing {

namespace fs = std::filesystem;

fs::path sample() {
    return fs::path(HEADSCOPE_SOURCE_DIR) / "resources/samples/llama-kjv-shakespeare";
}

fs::path write_tokens(const fs::path& path, const std::vector<int>& lengths) {
    nlohmann::json sequences = nlohmann::json::array();
    for (const int length : lengths) {
        nlohmann::json ids = nlohmann::json::array();
        unsigned state = 7;
        for (int i = 0; i < length; ++i) {
            state = state * 1103515245U + 12345U;
            ids.push_back(2 + (state >> 16U) % 2000);
        }
        sequences.push_back(ids);
    }
    return write_file(path, sequences.dump());
}

fs::path linked_sample(const fs::path& folder, const std::vector<std::string>& without) {
    fs::create_directory(folder);
    for (const auto& entry : fs::directory_iterator(sample())) {
        const std::string name = entry.path().filename().string();
        if (std::find(without.begin(), without.end(), name) == without.end())
            fs::create_symlink(entry.path(), folder / name);
    }
    return folder;
}

fs::path sample_with_config(const fs::path& folder, const std::function<void(nlohmann::json&)>& change) {
    linked_sample(folder, {"config.json"});
    auto config = nlohmann::json::parse(read_file(sample() / "config.json"));
    change(config);
    write_file(folder / "config.json", config.dump(2));
    return folder;
}

fs::path sample_with_weights(const fs::path& folder, std::string_view bytes) {
    linked_sample(folder, {"model.safetensors"});
    write_file(folder / "model.safetensors", bytes);
    return folder;
}

fs::path golden_sample(const fs::path& folder, const std::string& name) {
    const auto golden = nlohmann::json::parse(read_file(headscope::test::golden_model_file(name)));
    nlohmann::json header = nlohmann::json::object();
    std::string data;
    for (const auto& [tensor, shape] : golden.at("tensors").items()) {
        std::size_t count = 1;
        for (const auto& size : shape) count *= size.get<std::size_t>();
        const std::size_t begin = data.size();
        for (std::size_t i = 0; i < count; ++i) {
            const float value = 0.3F * std::sin(static_cast<float>(i + tensor.size()));
            data.append(reinterpret_cast<const char*>(&value), sizeof value);
        }
        header[tensor] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {begin, data.size()}}};
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const auto size = static_cast<std::uint64_t>(text.size());
    fs::create_directories(folder);
    write_file(folder / "model.safetensors",
               std::string(reinterpret_cast<const char*>(&size), sizeof size) + text + data);
    write_file(folder / "config.json", golden.at("config").dump());
    return folder;
}

}  // namespace headscope::testing

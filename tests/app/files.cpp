// SPDX-License-Identifier: GPL-3.0-or-later
#include "files.h"

#include <algorithm>

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

}  // namespace headscope::testing

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Files for tests of the command line: a folder that goes away, the bundled sample, and spoilt copies of it.

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace headscope::testing {

/// A new folder, removed with everything in it.
class TemporaryFolder {
public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
    const std::filesystem::path& path() const { return path_; }
    /// Names in it, sorted.
    std::vector<std::string> names() const;

private:
    std::filesystem::path path_;
};

std::string read_file(const std::filesystem::path& path);
std::filesystem::path write_file(const std::filesystem::path& path, std::string_view bytes);

/// The bundled sample checkpoint.
std::filesystem::path sample();

/// A JSON array of arrays of ids, for --tokens; ids repeat in a pattern that is the same every time.
std::filesystem::path write_tokens(const std::filesystem::path& path, const std::vector<int>& lengths);

/// A folder with the sample's files as symbolic links, but for those that the caller then writes.
std::filesystem::path linked_sample(const std::filesystem::path& folder, const std::vector<std::string>& without);

/// The sample with a changed config.json.
std::filesystem::path sample_with_config(const std::filesystem::path& folder,
                                         const std::function<void(nlohmann::json&)>& change);

/// The sample with changed bytes of model.safetensors.
std::filesystem::path sample_with_weights(const std::filesystem::path& folder, std::string_view bytes);

}  // namespace headscope::testing

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A model on disk: configuration, named tensors, tokenizer. Opening checks everything (spec files.md, "Reading") and
// allocates nothing that the file's bytes do not justify; tensors are read when they are asked for.
// Errors: headscope::Error with file, tensor or byte. Threads: const members are safe from several threads.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace at {
class Tensor;
}

namespace headscope::checkpoint {

/// Element types of safetensors. Sizes in bits: some are smaller than a byte.
enum class DataType {
    boolean, f4, f6_e2m3, f6_e3m2, u8, i8, f8_e5m2, f8_e4m3, f8_e8m0, f8_e4m3fnuz, f8_e5m2fnuz,
    i16, u16, f16, bf16, i32, u32, f32, c64, i64, u64, f64,
};
std::string_view name(DataType type);  ///< "BF16", as safetensors writes it
int bits(DataType type);

struct TensorInfo {
    std::string name;
    DataType type = DataType::f32;
    std::vector<std::int64_t> shape;
    std::int64_t elements = 0;
    std::size_t file = 0;        ///< index into Checkpoint::files()
    std::uint64_t begin = 0;     ///< byte offset in that file
    std::uint64_t bytes = 0;
};

/// The type that tensors get in memory.
enum class LoadAs { stored, float32, bfloat16, float64 };

class Checkpoint {
public:
    /// `path`: a folder, a .safetensors file, or an index of shards. A lone safetensors file without a config.json
    /// beside it opens with an empty configuration (has_config() is false).
    static std::shared_ptr<const Checkpoint> open(const std::filesystem::path& path);
    ~Checkpoint();

    const std::filesystem::path& path() const;
    std::string display_name() const;                       ///< the folder's or file's name
    bool has_config() const;
    const nlohmann::json& config() const;                   ///< config.json, an object
    const std::map<std::string, TensorInfo>& tensors() const;
    const std::vector<std::filesystem::path>& files() const;
    std::optional<std::filesystem::path> side_file(std::string_view name) const;  ///< "tokenizer.json" if it is there

    /// Reads one tensor straight into its storage, converted on the way in pieces when `as` differs from what is stored
    /// (integers and booleans are never converted). Types that LibTorch does not know throw unsupported.
    at::Tensor load(const std::string& tensor, LoadAs as = LoadAs::stored) const;

    /// SHA-256 (hex) of the weight files' SHA-256s in order of file name; cached in the user's cache folder by path,
    /// size and time. Seconds for gigabytes the first time: call it on a worker.
    std::string fingerprint() const;

private:
    struct Impl;
    explicit Checkpoint(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace headscope::checkpoint

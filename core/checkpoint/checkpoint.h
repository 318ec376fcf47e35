// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A model on disk: configuration, named tensors, tokenizer. Opening checks everything and
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

#include "core/base/progress.h"

namespace at {
class Tensor;
}

namespace headscope {
class Error;
class InputFile;
}  // namespace headscope

namespace headscope::checkpoint {

class Adapter;
struct PackedSource;  // core/checkpoint/packed/packed_source.h

/// Element types of safetensors. Sizes in bits: some are smaller than a byte.
enum class DataType {
    boolean,
    f4,
    f6_e2m3,
    f6_e3m2,
    u8,
    i8,
    f8_e5m2,
    f8_e4m3,
    f8_e8m0,
    f8_e4m3fnuz,
    f8_e5m2fnuz,
    i16,
    u16,
    f16,
    bf16,
    i32,
    u32,
    f32,
    c64,
    i64,
    u64,
    f64,
};
std::string_view name(DataType type);  ///< "BF16", as safetensors writes it
int bits(DataType type);

struct TensorInfo {
    std::string name;
    DataType type = DataType::f32;
    std::vector<std::int64_t> shape;
    std::int64_t elements = 0;
    std::size_t file = 0;     ///< index into Checkpoint::files()
    std::uint64_t begin = 0;  ///< byte offset in that file of the first element
    std::uint64_t bytes = 0;  ///< of the tensor in memory, in its stored type

    /// In elements, one a dimension, none below 0; empty where the elements follow each other in the file. Tensors of
    /// PyTorch files may be views: transposed, a part of another, or with elements that repeat (stride 0).
    std::vector<std::int64_t> strides;
    /// Checksum over the bytes around the tensor, if the file has one. A tensor that is all of these bytes is checked
    /// on reading.
    struct Checksum {
        std::uint64_t begin = 0;
        std::uint64_t bytes = 0;
        std::uint32_t crc32 = 0;
    };
    std::optional<Checksum> checksum;

    /// Set where the tensor is quantized in the files: float32 made of several stored tensors, all of which `bytes`
    /// counts; `file` and `begin` are the first one's.
    std::shared_ptr<const PackedSource> packed;
};
/// The type in the file: "BF16"; of a packed tensor that of its largest part: "Q4_K", "I32".
std::string stored_type(const TensorInfo& tensor);

struct TokenizerDocuments;  // core/checkpoint/gguf/tokenizer_documents.h

/// Tensors with one row per vocabulary entry, as the family lists them (core/model/load/open_checkpoint.h).
struct VocabularyTensors {
    std::string table, head;  ///< names; empty: none
    bool tied = false;        ///< the file has no head: it is the table
    // JSON pointers into config.json.
    std::string size_key;
    std::vector<std::string> tie_keys;
};

/// The type that tensors get in memory.
enum class LoadAs { stored, float32, bfloat16, float64, float16 };

class Checkpoint : public std::enable_shared_from_this<Checkpoint> {
public:
    /// `path`: a folder, a weight file (safetensors, PyTorch's or GGUF, distinguished by content), or an index of
    /// shards. A single weight file without a config.json next to it opens with an empty configuration (has_config() is
    /// false); a GGUF file has its own. In a folder the first match wins: model.safetensors,
    /// model.safetensors.index.json (as in transformers), the only .safetensors file, pytorch_model.bin,
    /// pytorch_model.bin.index.json, the only .bin, .pt, .pth or .ckpt file not named like a trainer's state, the only
    /// model in .gguf files. The files stay open, so a checkpoint that is replaced on disk is still read whole.
    /// Quantized weights have the names, shapes and configuration of the model that they are: TensorInfo::packed.
    static std::shared_ptr<const Checkpoint> open(const std::filesystem::path& path);
    /// The same with a LoRA adapter of PEFT's (adapter.h) merged into it: load() gives the merged weights, everything
    /// else is the base's. An empty `adapter`: none. The adapter may untie and resize `vocabulary`: tensors() and
    /// config() then are the merged model's.
    static std::shared_ptr<const Checkpoint> open(const std::filesystem::path& path,
                                                  const std::filesystem::path& adapter,
                                                  const VocabularyTensors& vocabulary = {});
    ~Checkpoint();

    const std::filesystem::path& path() const;
    std::string display_name() const;  ///< the folder's or file's name, "BASE + ADAPTER"
    bool has_config() const;
    const nlohmann::json& config() const;  ///< config.json, an object; without the keys of a quantization
    const std::map<std::string, TensorInfo>& tensors() const;
    const std::vector<std::filesystem::path>& files() const;  ///< the base's; an adapter has its own
    const Adapter* adapter() const;                           ///< null: none
    /// Notes for the user about the weights: unread content of the files (epoch, optimizer), other weights in the
    /// folder, removed prefixes. One line each, escaped.
    const std::vector<std::string>& notes() const;
    /// "tokenizer.json" beside the weights if it is there: a plain base name that ends at a regular file. A GGUF file
    /// has none.
    std::optional<std::filesystem::path> side_file(std::string_view name) const;

    /// The format of quantized weights: "GPTQ 4 bits", "GGUF Q4_K"; empty for others.
    const std::string& packed_format() const;
    /// The reason why quantized weights are not read: tensors() are the stored ones then. Null: none.
    const Error* quantization_fault() const;
    /// The tokenizer in a GGUF file; null for others, and for one without. The first call may take a second. Errors:
    /// format; unsupported for kinds that are not read.
    std::shared_ptr<const TokenizerDocuments> own_tokenizer() const;

    /// tokenizer_config.json beside the weights, or that of own_tokenizer(); null where there is none.
    nlohmann::json tokenizer_settings() const;

    /// True where the tensor does not lie in the files as it is loaded: merged with an adapter, or unpacked.
    bool is_made(const std::string& tensor) const;

    /// Tensors that are there but of a kind that is not read (quantised, sparse, of an unknown class), and why.
    const std::map<std::string, std::string>& unreadable() const;

    /// True where the tensor is packed in the files and no adapter has its own in its place.
    bool is_packed(const std::string& tensor) const;
    /// Bytes in the files, an adapter's too, that the tensor is made of.
    std::uint64_t stored_bytes(const std::string& tensor) const;

    /// The entry of a tensor; Error mismatch where there is none, unsupported where it is unreadable.
    const TensorInfo& tensor(const std::string& name) const;

    /// Reads one tensor straight into its storage, converted on the way in pieces when `as` differs from what is stored
    /// (integers, booleans and complex numbers are never converted). Types that LibTorch does not know throw
    /// unsupported. Conversion uses LibTorch's threads of the caller.
    at::Tensor load(const std::string& tensor, LoadAs as = LoadAs::stored) const;
    /// The same; tests `cancellation` every few megabytes and throws Stopped. `not_finite`, if given, gets how many
    /// of the numbers are NaN or infinite in memory.
    at::Tensor load(const std::string& tensor, LoadAs as, const Cancellation& cancellation,
                    std::int64_t* not_finite = nullptr) const;

    /// SHA-256 (hex) of the weight files' SHA-256s in order of file name; cached in the user's cache folder by path,
    /// size and time. Seconds for gigabytes the first time: call it on a worker. What is hashed is one line per file,
    /// 64 hexadecimal digits and a line feed: LC_ALL=C; sha256sum *.safetensors | cut -c1-64 | sha256sum. An adapter's
    /// file comes last.
    std::string fingerprint() const;
    std::string fingerprint(const Cancellation& cancellation) const;

    /// The open weight files, as many as files(): for readers in core/checkpoint.
    const std::vector<InputFile>& open_files() const;

private:
    struct Impl;
    explicit Checkpoint(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace headscope::checkpoint

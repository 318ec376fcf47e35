// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// LoRA adapters as PEFT writes them (arXiv 2106.09685): a folder with adapter_config.json and adapter_model.safetensors
// or .bin. Opening checks everything against the base's tensors; the adapter's numbers are read with the weight that
// they change (stored_tensor.h): W + scale * B A, in float32, or float64 where W becomes that. Errors:
// headscope::Error. Threads: const members from several.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/io/input_file.h"
#include "core/checkpoint/checkpoint.h"

namespace headscope::checkpoint {

class LowRankUpdate;  // core/checkpoint/adapter/low_rank_update.h

inline constexpr std::string_view adapter_config_name = "adapter_config.json";

/// Content of an adapter's folder in words: 'a LoRA adapter of "base"'. Never throws for unreadable files.
std::string adapter_text(const std::filesystem::path& folder);

/// base_model_name_or_path of an adapter's folder; empty where it has none or cannot be read.
std::string adapter_base(const std::filesystem::path& folder);

/// The weights in an adapter's folder; Error io where there are none.
std::filesystem::path adapter_weights(const std::filesystem::path& folder);

class Adapter {
public:
    /// `path`: the folder, or a file in it. `tensors` are the base's, `base` names it in errors. Whatever would change
    /// the computation and is not built is refused by its key; each tensor of the adapter must have its own in the
    /// base, of its shape, but for what the head of a task adds (a classifier's), a tied head, which becomes a tensor
    /// of its own where table or head change, and the rows of a resized vocabulary.
    Adapter(const std::filesystem::path& path, const std::map<std::string, TensorInfo>& tensors,
            const std::string& base, const VocabularyTensors& vocabulary = {});
    ~Adapter();
    Adapter(const Adapter&) = delete;

    const std::filesystem::path& path() const;  ///< the folder
    std::string display_name() const;           ///< its name
    const std::string& base() const;            ///< base_model_name_or_path; may be empty
    std::int64_t rank() const;                  ///< r and lora_alpha of the configuration, whatever its patterns say
    double alpha() const;
    std::vector<std::string> merged() const;    ///< the base's tensors that LoRA changes
    std::vector<std::string> replaced() const;  ///< and those that are the adapter's own (biases, modules_to_save)
    const std::vector<std::string>& left_out() const;  ///< of the adapter, without a place in the base
    const InputFile& file() const;                     ///< the adapter's weights
    /// Linear weights lie [in, out] (fan_in_fan_out), as far as their shapes leave it open: those whose two lengths are
    /// the same. Empty where there is none of these.
    std::optional<bool> open_direction() const;

    /// The base's, with a head that is no longer tied and the rows of a resized vocabulary.
    const std::map<std::string, TensorInfo>& tensors() const;
    std::optional<std::int64_t> vocabulary() const;  ///< rows of a resized one
    bool unties() const;                             ///< the head is no longer the table
    const std::string& shared_table() const;         ///< a table of the adapter's that stays the head; empty: none

    bool changes(const std::string& tensor) const;
    /// The adapter's tensor in place of the base's, or below A and B. Null: the base's. It lies in file().
    const TensorInfo* own(const std::string& tensor) const;
    /// The change by A and B, which are read. Null: none.
    std::shared_ptr<const LowRankUpdate> update(const std::string& tensor, const Cancellation& cancellation) const;
    /// Bytes of A and B in the file.
    std::uint64_t update_bytes(const std::string& tensor) const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace headscope::checkpoint

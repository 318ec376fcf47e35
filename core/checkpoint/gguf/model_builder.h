// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Turns keys and stored tensors of an architecture into a configuration and logical tensors.

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/checkpoint/gguf/gguf.h"
#include "core/checkpoint/packed/changes.h"

namespace headscope::checkpoint::gguf {

/// Changes a stored tensor on its way into the model.
using Change = std::function<PackedPointer(PackedPointer)>;

class ModelBuilder {
public:
    /// Fills in `model`, which has its files, metadata and stored tensors.
    ModelBuilder(GgufModel& model, std::string architecture);

    // Keys, without the architecture's name before them: "attention.head_count".
    std::string key(const std::string& name) const { return architecture_ + "." + name; }
    bool has(const std::string& name) const { return keys_.has(key(name)); }
    std::int64_t size(const std::string& name);                          ///< 1 .. 2^31 - 1
    std::int64_t size(const std::string& name, std::int64_t otherwise);  ///< 0 is as absent
    double number(const std::string& name, double otherwise);
    bool flag(const std::string& name, bool otherwise);
    std::string text(const std::string& name, const std::string& otherwise);
    /// One for each layer.
    std::vector<std::int64_t> each_layer(const std::string& name, std::int64_t lowest);
    bool is_list(const std::string& name) const { return keys_.is_array(key(name)); }
    void ignore(const std::string& name) { keys_.ignore(key(name)); }
    [[noreturn]] void unsupported(const std::string& name, const std::string& expected) const {
        keys_.refuse(ErrorCode::unsupported, key(name), expected);
    }
    [[noreturn]] void mismatch(const std::string& name, const std::string& expected) const {
        keys_.refuse(ErrorCode::mismatch, key(name), expected);
    }

    std::int64_t layers() const { return layers_; }

    // Tensors. Names without an end mean NAME.weight, NAME.bias and NAME.scale, as far as they exist.
    const Tensor* find(const std::string& stored) const;
    bool has_tensor(const std::string& stored) const { return find(stored) != nullptr; }
    /// True if any layer has it: "attn_q.bias".
    bool has_in_layers(const std::string& stored) const;
    /// A stored tensor, which now has its place. Throws Error mismatch where there is none.
    PackedPointer take(const std::string& stored);
    /// All numbers of a small one, float32.
    std::vector<float> read_numbers(const std::string& stored);
    /// A stored tensor that the model does not need.
    void leave(const std::string& stored) { taken_.insert(stored); }
    /// All whose names begin so.
    void leave_all(const std::string& begin);

    void put(const std::string& name, PackedPointer packed, bool transposed = false);
    /// `stored`.weight and .bias become `name`.weight and .bias, each changed.
    void module(const std::string& stored, const std::string& name, const Change& change = nullptr,
                bool transposed = false);
    /// One whole tensor, if it exists.
    void tensor(const std::string& stored, const std::string& name, const Change& change = nullptr);
    /// NAME.weight times NAME.scale (NVFP4), where that exists.
    PackedPointer take_scaled(const std::string& stored);
    /// Runs `change`; what does not fit is an Error with the stored tensor's name.
    PackedPointer changed(const std::string& stored, PackedPointer packed, const Change& change) const;
    [[noreturn]] void refuse_tensor(const std::string& stored, const std::string& expected,
                                    const std::string& found) const;

    nlohmann::json& config() { return model_.config; }
    /// Refuses keys and tensors that nothing has read.
    void finish();

private:
    GgufModel& model_;
    std::string architecture_;
    KeyReader keys_;
    std::string place_;
    std::int64_t layers_ = 0;
    std::set<std::string> taken_;
};

/// 2^31 - 1, the largest size of a configuration.
constexpr std::int64_t kLargestSize = (std::int64_t{1} << 31U) - 1;

/// blk.N.
std::string block(std::int64_t layer);

// Changes.
PackedPointer minus_one(PackedPointer packed);     ///< of norms that are stored as 1 + w
PackedPointer log_of_minus(PackedPointer packed);  ///< of decay rates that are stored as -exp(w)
/// Rows of adjacent pairs to rows of halves: (h, t d/2 + j) is (h, 2 j + t).
Change pairs_to_halves(std::int64_t heads, std::int64_t head_size);
/// Rows, or of one dimension numbers, first .. first + count - 1.
PackedPointer rows_of(const PackedPointer& packed, std::int64_t first, std::int64_t count);
Change to_shape(std::vector<std::int64_t> shape);

}  // namespace headscope::checkpoint::gguf

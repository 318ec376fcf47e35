// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Tiny checkpoints for tests, written from a list of shapes: every weight follows from its tensor's name by the formula
// that tests/oracle/models/models.py shares.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include "core/checkpoint/checkpoint.h"
#include "core/model/model.h"
#include "tests/core/base/temporary_folder.h"

namespace headscope::test {

/// Content of a checkpoint's folder. Tests change a copy and check the result of opening it.
struct TinyCheckpoint {
    nlohmann::json config;
    std::map<std::string, std::vector<std::int64_t>> tensors;
    std::string file_type = "F32";  ///< F32, F64, F16, BF16, I32
    int shards = 1;
    std::map<std::string, std::string> renamed;  ///< tensors with the numbers of another name

    /// Puts a tensor under another name, with its numbers.
    void rename(const std::string& from, const std::string& to);
    void write(const std::filesystem::path& folder) const;
    std::shared_ptr<model::Model> build(checkpoint::LoadAs precision = checkpoint::LoadAs::float32,
                                        model::Residence residence = model::Residence::float32) const;
};

/// A case of tests/oracle/models/data/: a checkpoint, what it was given, and what transformers made of it in float64.
struct GoldenModel {
    TinyCheckpoint checkpoint;
    model::Batch batch;
    at::Tensor logits;                  ///< [B, L, V] float64, or undefined
    at::Tensor text_logits;             ///< of a head for texts, [B, classes] float64, or undefined
    std::vector<at::Tensor> hidden;     ///< per layer boundary, [B, L, d]; the last is after the final norm; or empty
    std::vector<at::Tensor> attention;  ///< per layer, [B, H, L, L]; or empty
};
GoldenModel golden_model(const std::string& name);
/// Its batch alone, of an encoder-decoder too.
model::Batch golden_batch(const std::string& name);
/// Its checkpoint alone: of every kind of model.
TinyCheckpoint golden_checkpoint(const std::string& name);

/// The largest |a - b| over the real positions of a batch (all without lengths). Shapes [B, L, ..]; NaN gives infinity.
double largest_difference(const at::Tensor& a, const at::Tensor& b, const std::vector<std::int64_t>& lengths = {});
double largest_value(const at::Tensor& a);

/// Bounds on the error of a tiny model's results, relative to their largest value. float32: some dozens of rounded
/// operations one after the other; bfloat16: the same with 8 bits.
constexpr double kFloatError = 64 * 1.1920929e-7;
constexpr double kBfloatError = 16 * 3.90625e-3;

}  // namespace headscope::test

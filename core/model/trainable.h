// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A model that can be trained: the same stack that inference and analysis run, with its weights in one flat vector and
// their gradients in another, so that an optimiser is one sweep over memory.
//
// Threads: one compute thread owns all calls. Errors: headscope::Error.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/base/progress.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/save.h"
#include "core/model/fresh/mixer_swap.h"
#include "core/model/heads/head_loss.h"
#include "core/model/model.h"
#include "core/model/training_forward.h"

namespace headscope::model {

/// One tensor of a checkpoint file.
struct Parameter {
    std::string name;  ///< as the file calls it
    /// A view into the flat weights; its numbers, in order, are the file's. Parts of a fused matrix are its rows.
    at::Tensor value;
    std::vector<std::int64_t> shape;  ///< as the file has it; value's own but where heads are regrouped
    bool decays = true;               ///< false: gains, biases (docs/training.md)
    bool trained = true;              ///< false: guide noise and guide ids, which are in no flat vector
};

class FlatWeights;
class Stack;

class Trainable {
public:
    /// Fresh weights for a configuration, the text of a config.json: "headscope" (docs/file-formats.md), or llama,
    /// qwen2, qwen3 and other plain decoders as transformers writes them. Matrices and embeddings are N(0,
    /// initializer_range), gains one, biases zero; each from a generator of its own, seeded by `seed` and the tensor's
    /// name, so that a layer more or another mixer elsewhere changes nothing else. Types: float32, bfloat16, float64.
    static std::unique_ptr<Trainable> create(const std::string& config_json, std::uint64_t seed, at::ScalarType type);

    /// Weights of a checkpoint. `swap` replaces the mixers of some layers first, for stacks that the native format can
    /// say (Llama, Qwen and native ones): weights are kept where name and shape match, the others are
    /// fresh from `seed`; model().report() notes which.
    static std::unique_ptr<Trainable> open(const checkpoint::Checkpoint& checkpoint, at::ScalarType type,
                                           const MixerSwap& swap = {}, std::uint64_t seed = 0,
                                           Progress* progress = nullptr, const Cancellation* cancellation = nullptr);
    ~Trainable();

    /// The same weights, for evaluation, analysis and generation. Call again after the weights have changed: this drops
    /// values computed from them (guide streams).
    Model& model();
    const Model& model() const;

    const std::vector<Parameter>& parameters() const;
    /// [n], everything that is trained, decayed elements first. Parts begin at multiples of 32 elements; what lies
    /// between them is 0 and stays so under any optimiser.
    at::Tensor weights() const;
    /// [n] of the same type. The .grad of every leaf is a view into it: backward passes add to it, in place.
    at::Tensor gradients() const;
    std::int64_t decayed() const;  ///< elements [0, decayed) take weight decay
    /// Tensors that autograd records, each with its place in gradients() as its .grad: for hooks of several processes.
    const std::vector<at::Tensor>& leaves() const;

    /// Moves weights and gradients, and all tensors below, to a device of LibTorch, where passes then compute. Call it
    /// before leaves() and weights() are used elsewhere. Batches and targets stay on the processor.
    void to(const at::Device& device);
    at::Device device() const;

    /// Final hidden states [B, L, d] after the final norm, on device(), recorded by autograd.
    at::Tensor forward(const Batch& batch, const TrainingForward& training = {});
    /// The same with all options, of which `training` is set. Weights have not changed since model() was called.
    at::Tensor forward_with(const Batch& batch, const ForwardOptions& options);
    /// Loss of the head's logits (of tokens or of classes) for hidden rows [N, d] against targets [N] (head_loss.h):
    /// with the head's scale, projection, transform, bias and soft cap, as Model::logits has them.
    LossSum loss(const at::Tensor& hidden_rows, const at::Tensor& targets, const HeadLossOptions& options = {}) const;
    /// Logits [N, classes] of a head of few classes for hidden rows [N, d], recorded by autograd: for squared_error()
    /// and span_loss() (head_loss.h).
    at::Tensor class_logits(const at::Tensor& hidden_rows) const;
    /// [V, d], or [classes, d], a leaf; of a tied head the embedding.
    at::Tensor head_weight() const;

    /// Tokens that the stack of `fixed_seq_qk` layers reads as its guide: the first L_max of the training text,
    /// repeated where that is shorter. Until they are set (or read from a file) they are random ones of the seed.
    bool has_guide_ids() const;
    void set_guide_ids(const at::Tensor& ids);  ///< [any] int64

    /// Text of config.json: names and model_type of transformers if it has the stack (uniform `standard` ones as qwen2,
    /// qwen3 or llama), else the native format with every choice written out.
    std::string config_json() const;
    /// Every tensor of a checkpoint folder, in its order, with the values at the time of writing.
    std::vector<checkpoint::OutputTensor> output_tensors() const;
    /// Writes a checkpoint folder (core/checkpoint/save.h), whole or not at all; side files: tokenizer.json and the
    /// like.
    void save(const std::filesystem::path& destination, const std::vector<std::filesystem::path>& side_files,
              Progress& progress, const Cancellation& cancellation) const;

private:
    Trainable(std::shared_ptr<Stack> stack, std::unique_ptr<FlatWeights> weights);

    std::shared_ptr<Stack> stack_;
    std::unique_ptr<FlatWeights> weights_;
};

/// Moves it to model_device() (core/model/load/model_device.h), as Model::build() does. Call it before a Learner keeps
/// its tensors.
std::unique_ptr<Trainable> on_model_device(std::unique_ptr<Trainable> trainable);

}  // namespace headscope::model

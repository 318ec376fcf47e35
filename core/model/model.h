// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A model built from a checkpoint: one stack over a shared vocabulary of blocks; what differs between families is a
// recipe in families/. Threads: one compute thread owns all calls. Errors: headscope::Error.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/base/progress.h"
#include "core/base/site.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/batch.h"
#include "core/model/config.h"
#include "core/model/embedding/segments.h"
#include "core/model/load/residence.h"
#include "core/model/probe.h"

namespace headscope::model {

struct TrainingForward;  // core/model/training_forward.h
class Cache;             // core/model/towers/cache.h: one opaque mixer cache per layer
class Editor;            // core/model/edits/editor.h

/// A tensor with numbers that are NaN or infinite.
struct NotFinite {
    std::string tensor;
    std::int64_t numbers = 0;   ///< count
    std::int64_t elements = 0;  ///< out of this many
};

/// Matches between the family's recipe and the file.
struct LoadReport {
    std::size_t matched = 0;
    std::vector<std::string> missing;    ///< wanted by the recipe, not in the file (optional heads only: else an error)
    std::vector<std::string> left_over;  ///< in the file, not wanted; buffers of old files are among them
    std::vector<std::string> notes;      ///< choices that were filled in
    /// Non-finite numbers that were read, in the order of the model; none without weights.
    std::vector<NotFinite> not_finite;
};

/// The first of them in a sentence, and how many others there are; empty: there is none.
std::string weights_problem(const LoadReport& report);

struct ForwardOptions {
    Probe* probe = nullptr;
    Cache* cache = nullptr;     ///< with one, the batch continues what the cache holds
    std::set<int> skip_layers;  ///< whole blocks left out
    Editor* editor = nullptr;   ///< replaces values on the way (edits/editor.h)
    /// The one position whose final hidden states are returned, [B, 1, d]; -1: all. Behind its mixer the last layer
    /// then computes that position alone, and softmax attention its query alone, unless a value there is edited.
    /// Excludes cache, probe and training.
    std::int64_t only_position = -1;
    Segments segments;
    bool beyond_positions = false;  ///< rotary and position-free models may run past their limit
    const Cancellation* cancellation = nullptr;
    const TrainingForward* training = nullptr;   ///< autograd records this pass: Trainable asks for it
    std::function<void(int layer)> after_layer;  ///< progress
};

/// Hidden states that wait while other passes run a layer: in memory up to a limit, beyond it in a file without a name.
struct WaitingPlace {
    double memory_bytes = std::numeric_limits<double>::infinity();
    std::filesystem::path folder{};  ///< of the file
};

class Model {
public:
    /// Recognises the family by model_type, checks every tensor's name and shape before one is read, then loads.
    static std::shared_ptr<Model> build(const checkpoint::Checkpoint& checkpoint,
                                        checkpoint::LoadAs precision = checkpoint::LoadAs::float32,
                                        Progress* progress = nullptr, const Cancellation* cancellation = nullptr,
                                        Residence residence = Residence::float32);
    virtual ~Model() = default;

    virtual const ModelConfig& config() const = 0;  ///< of an encoder-decoder the decoder's, with the encoder's in it
    virtual const std::vector<Site>& sites() const = 0;
    virtual std::vector<std::string> mixers() const = 0;  ///< the mixer's name, per layer
    virtual const LoadReport& report() const = 0;
    virtual std::int64_t parameters() const = 0;
    virtual Residence residence() const { return Residence::float32; }
    /// Weights, without biases and gains, of all attention sublayers (token mixers of any kind, with their output
    /// projections), and of word inputs: tables of tokens, of hash embeddings without the rows of special tokens except
    /// for emb, whose table counts as a whole. -1: unknown.
    virtual std::int64_t attention_parameters() const { return -1; }
    virtual std::int64_t embedding_parameters() const { return -1; }
    virtual bool causal() const = 0;
    virtual bool has_head() const = 0;                  ///< logits over the vocabulary are possible
    virtual bool has_classes() const { return false; }  ///< logits over classes are (ModelConfig::head)

    /// Final hidden states [B, L, d] (or ForwardOptions::only_position), after the final norm; of an encoder-decoder
    /// its decoder's, for Batch::target. Checks ids and lengths first.
    virtual at::Tensor forward(const Batch& batch, const ForwardOptions& options = {}) = 0;

    struct Pass {
        const Batch* batch;
        ForwardOptions options;
    };
    using Finished = std::function<void(std::size_t pass, const at::Tensor& hidden)>;
    /// The same for several batches, all of which pass a layer before the next one: for weights that are read when a
    /// layer runs. `finished` gets the hidden states in the order of the passes, after the last layer of all.
    virtual void forward_each(const std::vector<Pass>& passes, const WaitingPlace& place, const Finished& finished);

    /// Vocabulary rows for hidden rows [N, d] -> [N, V] float32, or those of classes (ModelConfig::head_columns; a head
    /// of the text's classes reads the rows of first tokens); call it in chunks of rows (16 384 x 50 304 logits would
    /// be 3.3 GB). With a probe they are announced as "logits", layer -1. Throws usage without a head.
    virtual at::Tensor logits(const at::Tensor& hidden_rows, Probe* probe = nullptr) = 0;
    /// Rows whose logits take at most 64 MB: the chunk for callers.
    std::int64_t logit_rows() const;

    /// Next-token loss in nats for each position, [B, L] float32 with NaN at each sequence's last position; computed in
    /// row chunks. `rows`, if given, sees every chunk of logits (sequence, first row, [n, V]) for recording.
    using LogitRows = std::function<void(std::int64_t sequence, std::int64_t first_row, const at::Tensor& rows)>;
    at::Tensor next_token_loss(const Batch& batch, const at::Tensor& hidden, const LogitRows& rows = {},
                               const Cancellation* cancellation = nullptr);

    virtual std::unique_ptr<Cache> new_cache() const = 0;

    /// Moves the weights to a device of LibTorch; layers that are not resident move when they run. From then on passes
    /// compute there. Batches, hidden states, logits and the tensors of probes and editors stay on the processor;
    /// caches made before are no longer valid. Throws unsupported for a model that cannot move, and usage for one of a
    /// Trainable, which moves by its own to(). Errors of the device are LibTorch's.
    virtual void to(const at::Device& device);
    virtual at::Device device() const { return at::kCPU; }

protected:
    /// logits() where the weights are.
    virtual at::Tensor logits_on_device(const at::Tensor& hidden_rows, Probe* probe) {
        return logits(hidden_rows, probe);
    }
};

/// A checkpoint as a model without reading weights: all checks of Model::build.
struct Inspection {
    ModelConfig config;
    std::vector<Site> sites;
    LoadReport report;
    std::int64_t parameters = 0;
    bool has_head = false, has_classes = false;
    WeightSizes sizes;  ///< of a file
};
Inspection inspect(const checkpoint::Checkpoint& checkpoint);

/// Families by name, for `list families` and error texts.
std::vector<std::string> known_families();

}  // namespace headscope::model

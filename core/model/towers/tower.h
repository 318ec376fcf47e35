// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// An embedding, layers over it and a final norm: what a plain model has one of, and an encoder-decoder two.
// Threads: the compute thread.

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/mixers/mixer.h"
#include "core/model/blocks.h"
#include "core/model/embedding/rotary.h"
#include "core/model/model.h"
#include "core/model/towers/waiting_tensors.h"

namespace headscope::model {

class LayerWeights;  // core/model/load/layer_weights.h

/// One block: a mixer with its output projection, and a feed-forward; each with its norm before it (pre-norm) or after
/// the residual sum (post-norm), and perhaps one of its update before that is added.
struct Layer {
    Norm input_norm;
    std::unique_ptr<mixers::Mixer> mixer;  ///< null: none (kNoMixer)
    Linear output;                         ///< weight undefined: the mixer's own work
    Norm attention_update_norm;
    SumFactors attention_sum;
    bool has_feed_forward = true;
    Norm feed_forward_norm;
    FeedForward feed_forward;
    Norm feed_forward_update_norm;
    at::Tensor bucket_bias;  ///< [buckets, heads] of PositionKind::bucketed where each layer has its own, or undefined

    // In a decoder with an encoder, after the mixer of its own tokens:
    Norm cross_norm;
    std::unique_ptr<mixers::Mixer> cross;  ///< null: none
    Linear cross_output;

    mixers::QueryKeySource source() const {
        return mixer ? mixer->type().query_key_source : mixers::QueryKeySource::own;
    }
};

/// A tower's place in its model, and its sites' names.
struct TowerPlace {
    std::int64_t first_layer = 0;  ///< what the layers' numbers begin with
    std::string stack = "text";
    std::string stream = "tokens";         ///< the token sequence that it reads
    std::string memory_stream = "tokens";  ///< the one that cross-attention looks at
};

class Tower {
public:
    /// Declares every tensor; the tower's sites join `sites`.
    void declare(TensorPlan& plan, TensorNames names, TowerPlace place, std::vector<Site>& sites);

    /// The input of one pass. `context` comes with what surrounds the tower (sites, lengths, probe, cancellation); the
    /// tower fills in the rest.
    struct Start {
        const Batch* batch;
        const ForwardOptions* options;
        mixers::StackContext context;
        const WaitingTensors::Slot* memory;  ///< of StackContext::memory, or null
    };
    /// Final hidden states [B, L, d] of each; all pass a layer before the next.
    std::vector<WaitingTensors::Slot> run(const std::vector<Start>& starts, WaitingTensors& waiting) const;

    /// Adds the caches of every layer, in the order in which run() takes them from ForwardOptions::cache.
    void add_caches(std::vector<std::unique_ptr<mixers::MixerCache>>& caches) const;
    void add_mixers(std::vector<std::string>& names) const;  ///< the mixer's name, per layer

    /// Positions of a layer's queries and keys, counted from the tower's first layer; null: it has none.
    const Rotary* rotary_of(std::int64_t layer) const;

    /// Guide streams that were run ahead are run again: the weights have changed.
    void forget() { kept_ = {}; }
    /// So long a text is about to grow token by token: its guide streams are run once, for all of it. 0: not known.
    void expect(std::int64_t tokens) { expected_ = tokens; }

    /// The device of the weights. Tables of positions are made for it.
    void set_device(const at::Device& device) {
        device_ = device;
        forget();
    }

    /// Layers are run with weights that are there only then; null: they are always there.
    void set_weights(LayerWeights* weights) { weights_ = weights; }

    const Embedding& embedding() const { return embedding_; }
    const Norm& final_norm() const { return final_norm_; }
    /// In the order in which they are run; one that is shared comes again (ModelConfig::shared_layers).
    std::vector<const Layer*> layers() const;

private:
    /// Rotary positions of one call: the tables for its tokens, and from position 0 on where caches need that.
    struct Rotation {
        const Rotary* rotary = nullptr;
        RotaryTable here, history;
        void enter(mixers::StackContext& context) const;
    };
    Rotation rotation(const std::optional<Rotary>& rotary, std::int64_t held, std::int64_t length, bool cached) const;
    void declare_layer(TensorPlan& plan, const TensorNames& names, std::int64_t number);
    void enter(std::size_t number, PassSize size, const Cancellation* cancellation) const;
    void enter_feed_forward(const Cancellation* cancellation) const;
    /// All passes run a layer's mixers before the first runs its feed-forward, which may then take the memory of their
    /// weights. Not where blocks are parallel, nor where layers are shared: their weights would be converted again.
    bool runs_in_steps() const { return !config_->parallel_residual && config_->shared_layers.empty(); }
    struct Pass;
    void begin(Pass& pass, const Batch& batch) const;
    void make_rotations(Pass& pass) const;
    void run_mixers(Pass& pass, std::size_t number, PassSize size) const;
    void run_feed_forward(Pass& pass, std::size_t number) const;
    at::Tensor end(Pass& pass) const;
    std::string end_prefix() const;
    bool is_encoder() const { return place_.stack == "encoder"; }
    struct LayerCaches {
        mixers::MixerCache* own = nullptr;
        mixers::MixerCache* cross = nullptr;
    };
    void add_sites(const mixers::Mixer& mixer, std::int64_t number, std::vector<Site>& sites) const;
    /// A layer's values between its mixers and its feed-forward.
    struct Halfway {
        at::Tensor residual;     ///< with the mixers' updates; a parallel block's without
        at::Tensor read, mixed;  ///< only in a parallel block: its input after the norm, and its mixer's update
    };
    /// `position`: the one whose values are computed behind the mixer; -1: all.
    Halfway mix(const Layer& layer, const at::Tensor& entering, const mixers::StackContext& context,
                const LayerCaches& caches, std::int64_t position = -1) const;
    /// The editor's stored heads of the layer; undefined: its mixer runs.
    static at::Tensor stored_heads(const Layer& layer, const mixers::StackContext& context,
                                   const mixers::MixerCache* cache);
    /// The output projection of stored heads of which each row of the batch has one edited at most: one product for all
    /// rows, and one of each row's change. Undefined where that does not hold.
    static at::Tensor output_of_stored(const Layer& layer, const at::Tensor& read, const mixers::StackContext& context,
                                       const mixers::MixerCache* cache);
    /// The mixer's result for `read`, or the editor's stored heads in its place.
    at::Tensor run_mixer(const Layer& layer, const at::Tensor& read, const mixers::StackContext& context,
                         mixers::MixerCache* cache) const;
    /// ForwardOptions::only_position in the last layer, if no value behind its mixer is edited; else -1.
    std::int64_t only_position(const Pass& pass, std::size_t number) const;
    /// True if the layer's mixer may return one row alone: it can, and no value with a row for each query is edited.
    static bool mixes_one_position(const Layer& layer, const mixers::StackContext& context);
    at::Tensor feed_forward(const Layer& layer, const Halfway& half, const mixers::StackContext& context) const;
    at::Tensor add(const at::Tensor& residual, const at::Tensor& update, const Norm& norm,
                   const SumFactors& factors) const;
    at::Tensor scaled(const at::Tensor& update, const SumFactors& factors) const;
    /// x [B, L, size] at one position, [B, 1, size]; -1: all of it.
    static at::Tensor at_position(const at::Tensor& x, std::int64_t position);
    /// In training with dropout, `x` without some of its numbers; `where` is the place in the layer.
    static at::Tensor dropped(const at::Tensor& x, const mixers::StackContext& context, std::string_view where);
    void declare_bias(TensorPlan& plan, at::Tensor* into, const std::string& name, const SizeKeys& keys) const;
    /// `table` is the bias by distance of the self-attentions to come; `bias` is what the context then points to.
    void enter_bias(const at::Tensor& table, kernels::ScoreRule& bias, mixers::StackContext& context,
                    bool recorded) const;
    /// For a mixer that reads the embeddings: those after its layer's input norm.
    at::Tensor embedding_for(const Layer& layer, const at::Tensor& embedding) const;

    // Guide streams (tower_guides.cpp). Their queries and keys by layer number, for texts of `length` tokens.
    void declare_guides(TensorPlan& plan, const TensorNames& names);
    at::Tensor guide_input(mixers::QueryKeySource guide, std::int64_t length) const;
    std::vector<mixers::GuideMaps> run_guides(std::int64_t length, const ForwardOptions& options,
                                              mixers::StackContext context) const;
    const std::vector<mixers::GuideMaps>& kept_guides(std::int64_t length, const ForwardOptions& options,
                                                      const mixers::StackContext& context) const;

    at::Tensor add_cross(const Layer& layer, const at::Tensor& hidden, mixers::StackContext context,
                         mixers::MixerCache* cache) const;

    const ModelConfig* config_ = nullptr;
    Embedding embedding_;
    std::optional<Rotary> rotary_, window_rotary_;
    std::map<std::int64_t, std::optional<Rotary>> own_rotary_;  ///< of ModelConfig::layer_heads, by layer number
    std::vector<Layer> layers_;                                 ///< of the file
    std::vector<std::size_t> order_;                            ///< which of them is run, by layer number
    std::vector<std::int64_t> first_sites_;                     ///< by layer number
    Norm final_norm_;
    /// [ModelConfig::bucket_rows, heads] where all layers share one, or undefined
    at::Tensor bucket_bias_;
    TowerPlace place_;
    LayerWeights* weights_ = nullptr;
    at::Device device_ = at::kCPU;

    bool reads_guides_ = false;
    at::Tensor guide_noise_;  ///< [1, max positions, d] or undefined
    at::Tensor guide_ids_;    ///< [max positions] int64 or undefined
    struct KeptGuides {
        std::int64_t length = 0;
        std::set<int> skipped;  ///< layers that the guides were run without
        std::vector<mixers::GuideMaps> maps;
    };
    std::int64_t expected_ = 0;  ///< tokens that a text which grows will have; 0: not known
    mutable KeptGuides kept_;    ///< of the weights as they are: what inference needs over and over
};

}  // namespace headscope::model

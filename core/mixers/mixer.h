// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Token mixers: the part of a block between its input norm and its output projection. The stack owns the block, its
// norms, output projection and feed-forward. A mixer keeps earlier tokens in an opaque cache of its own. Threads: the
// compute thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/base/indices.h"
#include "core/base/progress.h"
#include "core/base/site.h"
#include "core/mixers/types/type.h"
#include "core/model/config.h"
#include "core/model/edits/editor.h"
#include "core/model/embedding/rotary.h"
#include "core/model/probe.h"

namespace headscope::model {
class TensorPlan;
struct Segments;
struct TensorNames;
struct TrainingForward;
}  // namespace headscope::model

namespace headscope::mixers {

/// One layer's memory of earlier tokens.
class MixerCache {
public:
    virtual ~MixerCache() = default;
    virtual std::int64_t bytes() const = 0;
    virtual std::unique_ptr<MixerCache> clone() const = 0;
    /// The cache of sequences [n] int64 of its batch, in this order; one may repeat.
    virtual std::unique_ptr<MixerCache> chosen(const at::Tensor& sequences) const = 0;
    /// True if drop(tokens) restores the state before these tokens. States that sum up their tokens cannot.
    virtual bool can_drop(std::int64_t tokens) const {
        (void)tokens;
        return false;
    }
    /// Forgets the last tokens; after can_drop(tokens) alone.
    virtual void drop(std::int64_t tokens) { (void)tokens; }
};

/// Query and key of a guide stream at one layer, from position 0 on, the same for every text: [1, Lg, heads +
/// key_value_heads, size], after their norms, and after rotary positions (the same tensor where there are none).
struct GuideMaps {
    at::Tensor query_key, rotated;
};

/// Everything around a mixer's input that it may need. Members live as long as the call.
struct StackContext {
    LayerIndex layer;
    SiteIndex site;                            ///< the first of this layer's sites
    const std::vector<Site>* sites = nullptr;  ///< the whole model's, by SiteIndex
    at::Tensor input_embedding;       ///< [B, L, d], what the first layer read, after this layer's input norm; only for
                                      ///< mixers that read it
    std::int64_t first_position = 0;  ///< of this call's first token; earlier ones are in the cache
    /// The one row whose output is read, of mixers that may return it alone (Mixer::returns_one_position); -1: all.
    std::int64_t only_position = -1;
    const model::Rotary* rotary = nullptr;                 ///< null: positions do not enter the scores by rotation
    const model::RotaryTable* rotation = nullptr;          ///< of this call's tokens
    const model::RotaryTable* history_rotation = nullptr;  ///< from position 0 on; given when keys are cached unrotated
    const model::Segments* segments = nullptr;             ///< as of ForwardOptions; null: the text is one
    const std::vector<std::int64_t>* lengths = nullptr;    ///< [B], null when no sequence is padded
    const GuideMaps* guide = nullptr;  ///< of this layer, for mixers that read one; at least as long as the text so far
    at::Tensor memory;                 ///< [B, Lk, d] the encoder's output (cross-attention), or undefined
    const std::vector<std::int64_t>* memory_lengths = nullptr;
    const kernels::ScoreRule* shared_bias = nullptr;  ///< its distance bias is that of the self-attention (T5)
    at::Tensor shared_bias_table;  ///< the same [heads, bias_length] where autograd records it, or undefined
    const model::TrainingForward* training = nullptr;  ///< null: not recorded by autograd
    model::Editor* editor = nullptr;                   ///< null: nothing is edited
    /// Weight of the output projection that reads what the site returns; null where a mixer does more to it than
    /// attend().
    const at::Tensor* output_projection = nullptr;
    model::Probe* probe = nullptr;
    const Cancellation* cancellation = nullptr;

    bool wants(std::string_view name) const { return probe != nullptr && probe->wants(name, layer); }
    void announce(std::string_view name, const at::Tensor& value) const {
        if (wants(name)) probe->announce(name, layer, value);
    }

    /// True if the value of this layer and, for a point of one attention, of site `at`, is edited.
    bool edits(model::Point point, SiteIndex at) const;
    bool edits(model::Point point) const { return edits(point, site); }
    /// `value` with its edits; announced as NAME_edited if there are any.
    at::Tensor edited(model::Point point, const at::Tensor& value, SiteIndex at) const;
    at::Tensor edited(model::Point point, const at::Tensor& value) const { return edited(point, value, site); }
    /// Announces the value by the point's name, then edits it.
    at::Tensor pass(model::Point point, const at::Tensor& value) const {
        announce(model::name(point), value);
        return edited(point, value);
    }
    /// As edited(), for a matrix of `rule` whose `visible` pairs are known.
    at::Tensor edited_matrix(model::Point point, const at::Tensor& matrix, const at::Tensor& visible,
                             const kernels::ScoreRule& rule, SiteIndex at) const;
    /// The context of keys and values of an encoder's output.
    StackContext of_memory() const;
};

/// The linear maps of a softmax attention's heads, without positions, clipping, output gates and the scales of
/// norms of queries, keys and latents, whose gains and centering are in them, or biases of queries and keys. Query head
/// h reads key and value head h / (H / G). Keys and values of cross-attention read the encoder's output.
struct HeadMaps {
    at::Tensor query, key;    ///< [H, d, dk], [G, d, dk]
    at::Tensor value;         ///< [G, d, dv]
    at::Tensor output;        ///< [d, H * dv]; undefined: the layer's output projection
    at::Tensor value_bias{};  ///< [G, dv]; undefined: none
};

class Mixer {
public:
    virtual ~Mixer() = default;

    virtual const MixerType& type() const = 0;
    std::string name() const { return type().name; }
    /// Says which tensors of the file it wants, and where they go.
    virtual void declare(model::TensorPlan& plan, const model::TensorNames& names) = 0;
    /// Its attention sites, in the order in which they are announced; Site::layer is filled in by the stack.
    virtual std::vector<Site> sites() const = 0;
    /// Columns of what forward() returns: what the output projection reads.
    virtual std::int64_t output_size() const = 0;
    /// `normed` [B, L, d] -> [B, L, output_size()]. With a cache, the tokens follow those that it holds.
    virtual at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const = 0;
    virtual std::unique_ptr<MixerCache> new_cache() const = 0;
    /// True if forward() returns the head output of its one site, heads side by side, without a gate or norm behind it.
    virtual bool returns_heads() const { return false; }
    /// True if forward() may return the row of StackContext::only_position alone, [B, 1, output_size()], computing
    /// queries for no other row. Requested in passes without cache, probe, padding and gradients that edit no value
    /// with a row for each query.
    virtual bool returns_one_position() const { return false; }

    /// Maps of its first site; empty: it has no such maps. Weights are in memory.
    virtual std::optional<HeadMaps> head_maps() const { return std::nullopt; }

    /// For mixers that read a guide stream: its maps, from the guide's state at this layer after the input norm, [1,
    /// Lg, d].
    virtual GuideMaps guide_maps(const at::Tensor& normed, const StackContext& context) const;
};

/// A mixer by name for layer `layer` of a model; throws Error(unsupported) that lists the known names.
std::unique_ptr<Mixer> make_mixer(std::string_view name, const model::ModelConfig& config, std::int64_t layer);
/// The cross-attention of a decoder's layer whose own tokens have this mixer; `config` is the decoder's. Throws
/// likewise.
std::unique_ptr<Mixer> make_cross_mixer(std::string_view name, const model::ModelConfig& config);

}  // namespace headscope::mixers

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// An embedding, layers over it and a final norm: what a plain model has one of, and an encoder-decoder two.
// Threads: the compute thread.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/mixers/mixer.h"
#include "core/model/blocks.h"
#include "core/model/model.h"
#include "core/model/rotary.h"

namespace headscope::model {

/// One block: a mixer with its output projection, and a feed-forward; each with its norm before it (pre-norm) or after
/// the residual sum (post-norm), and perhaps one of its update before that is added.
struct Layer {
    Norm input_norm;
    std::unique_ptr<mixers::Mixer> mixer;
    Linear output;
    Norm attention_update_norm;
    Norm feed_forward_norm;
    FeedForward feed_forward;
    Norm feed_forward_update_norm;
    std::int64_t first_site = 0;
};

class Tower {
public:
    /// Declares every tensor; the tower's layers are numbered from `first_layer` on in `sites`, which its sites join.
    void declare(TensorPlan& plan, TensorNames names, std::int64_t first_layer, std::vector<Site>& sites);

    /// Final hidden states [B, L, d]. `context` comes with what surrounds the tower (sites, lengths, memory, probe,
    /// cancellation); the tower fills in the rest.
    at::Tensor run(const Batch& batch, const ForwardOptions& options, mixers::StackContext context) const;

    const Embedding& embedding() const { return embedding_; }
    const std::vector<Layer>& layers() const { return layers_; }

private:
    at::Tensor run_layer(const Layer& layer, const at::Tensor& hidden, const mixers::StackContext& context,
                         mixers::MixerCache* cache) const;

    const ModelConfig* config_ = nullptr;
    Embedding embedding_;
    std::optional<Rotary> rotary_;
    std::vector<Layer> layers_;
    Norm final_norm_;
    std::int64_t first_layer_ = 0;
};

}  // namespace headscope::model

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The one hook through which a forward pass is changed. A Probe reads values; an Editor replaces them, under inference
// mode or autograd, with and without a cache. Threads: the compute thread.

#include <compare>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/base/indices.h"

namespace headscope::model {

/// Editable values, in the order of the computation.
enum class Point : std::uint8_t {
    embedding,           ///< [B, L, d], input of the first block (of an encoder-decoder: its decoder's)
    residual_before,     ///< [B, L, d], input of block l
    query,               ///< [B, H, L, dk], after its norm, before rotary positions
    key,                 ///< [B, G, L, dk], likewise
    value,               ///< [B, G, L, dv]
    scores,              ///< [B, H, Lq, Lk], scaled, capped, biased; -inf where the mask hides a key
    pattern,             ///< [B, H, Lq, Lk], the weights of the values
    head_output,         ///< [B, H, L, dv], before an output gate or head norm
    mixer_output,        ///< [B, L, size], input of the output projection
    attention_output,    ///< [B, L, d], added to the residual stream
    residual_middle,     ///< [B, L, d], between attention and feed-forward of a serial block
    feed_forward_input,  ///< [B, L, d], input of the feed-forward's norm alone; the skip connection keeps the old value
    feed_forward_output,  ///< [B, L, d], added to the residual stream
    hidden,               ///< [B, L, d], output of block l
    final_norm,           ///< [B, L, d], output of the final norm
};
inline constexpr std::int64_t kPoints = 15;

/// The name in probes, files and options.
std::string_view name(Point point);
/// True for values with a head axis: [B, heads, L, size] or [B, heads, Lq, Lk].
bool has_heads(Point point);
/// True for [B, H, Lq, Lk].
inline bool is_matrix(Point point) {
    return point == Point::scores || point == Point::pattern;
}
/// True for values of one attention, which EditPlace::site names.
bool is_of_site(Point point);

/// Names one value of a model. layer: -1 at the ends; site: -1 unless is_of_site().
struct PointKey {
    Point point = Point::embedding;
    std::int64_t layer = -1, site = -1;
    auto operator<=>(const PointKey&) const = default;
};

/// A value that is about to be used. Members live as long as the call.
struct EditPlace {
    PointKey key;
    std::int64_t first_position = 0;                         ///< of the first row; earlier ones are in a cache
    const std::vector<std::int64_t>* lengths = nullptr;      ///< [B] real rows; null: all
    const std::vector<std::int64_t>* key_lengths = nullptr;  ///< [B] real keys of a matrix; null: all
    at::Tensor visible{};                                    ///< of a matrix: [B, H, Lq, Lk] bool
    std::int64_t first_key = 0;                              ///< position of a matrix's first key
};

class Editor {
public:
    virtual ~Editor() = default;

    struct Start {
        bool cached = false;                     ///< the pass has a cache: texts come in pieces
        bool continues = false;                  ///< which holds tokens already
        const std::set<int>* skipped = nullptr;  ///< layers left out
    };
    /// A pass begins. Throws usage for edits that it cannot have.
    virtual void begin(const Start&) {}
    /// True if edit() should be called.
    virtual bool edits(const PointKey& key) const = 0;
    /// The value to use from here on: `value` itself, or a new tensor of its shape and type. `value` is not written to.
    virtual at::Tensor edit(const EditPlace& place, const at::Tensor& value) = 0;
    /// The head output at `key` [1 or B, H, L, dv] ahead of edit(), if it is stored: the mixer then does not run.
    /// Undefined: it is not. Requested in passes without cache, probe and gradients, of mixers that return their heads
    /// (mixers::Mixer::returns_heads).
    virtual at::Tensor stored_heads(const PointKey& key) const {
        (void)key;
        return {};
    }
    /// The one head that edit() changes in each row of a batch at a head output, -1: none; empty: not known, or several
    /// in a row. Passes of float32 then project the heads that are stored once, and each row's change.
    virtual std::vector<std::int64_t> changed_heads(const PointKey& key) const {
        (void)key;
        return {};
    }
    /// The pass has come to its end. Throws for an edit that found no place.
    virtual void end() {}
};

}  // namespace headscope::model

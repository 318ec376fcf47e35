// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"

namespace headscope::mixers {

/// Keys and values of all tokens so far but those that were forgotten, in buffers that double when they are full.
class KeyValueCache final : public MixerCache {
public:
    KeyValueCache() = default;
    /// `of_source`: keys and values of an encoder's output, which stay when tokens of the decoder are dropped.
    explicit KeyValueCache(bool of_source) : of_source_(of_source) {}

    std::int64_t bytes() const override;
    std::unique_ptr<MixerCache> clone() const override;
    std::unique_ptr<MixerCache> chosen(const at::Tensor& sequences) const override;

    /// key [B, G, L, dk], value [B, G, L, dv]: copied behind what is held.
    void append(const at::Tensor& key, const at::Tensor& value);
    bool can_drop(std::int64_t tokens) const override { return of_source_ || (forgotten_ == 0 && tokens <= held_); }
    /// The last `tokens` tokens are forgotten.
    void drop(std::int64_t tokens) override { held_ -= of_source_ ? 0 : tokens; }
    /// All tokens but the `first` and the `last` ones may be forgotten, and are where they are many.
    void keep(std::int64_t first, std::int64_t last);
    std::int64_t forgotten() const { return forgotten_; }  ///< how many keep() has forgotten
    KeyValueCache copy() const;
    bool empty() const { return held_ == 0; }
    std::int64_t held() const { return held_; }
    at::Tensor key() const;    ///< [B, G, held, dk], a view
    at::Tensor value() const;  ///< [B, G, held, dv], a view

private:
    at::Tensor keys_, values_;  ///< [B, G, capacity, size]
    std::int64_t held_ = 0, forgotten_ = 0;
    bool of_source_ = false;
};

}  // namespace headscope::mixers

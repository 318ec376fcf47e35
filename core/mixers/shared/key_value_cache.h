// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"

namespace headscope::mixers {

/// Keys and values of all tokens so far, in buffers that double when they are full.
class KeyValueCache final : public MixerCache {
public:
    std::int64_t bytes() const override;
    std::unique_ptr<MixerCache> clone() const override;
    std::unique_ptr<MixerCache> chosen(const at::Tensor& sequences) const override;

    /// key [B, G, L, dk], value [B, G, L, dv]: copied behind what is held.
    void append(const at::Tensor& key, const at::Tensor& value);
    /// The last `count` tokens are forgotten.
    void drop(std::int64_t count) { held_ -= count; }
    KeyValueCache copy() const;
    bool empty() const { return held_ == 0; }
    std::int64_t held() const { return held_; }
    at::Tensor key() const;    ///< [B, G, held, dk], a view
    at::Tensor value() const;  ///< [B, G, held, dv], a view

private:
    at::Tensor keys_, values_;  ///< [B, G, capacity, size]
    std::int64_t held_ = 0;
};

}  // namespace headscope::mixers

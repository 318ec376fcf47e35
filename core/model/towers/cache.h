// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/mixers/mixer.h"

namespace headscope::model {

/// A model's memory of the tokens it has read: one opaque mixer cache a layer. Made by Model::new_cache(), filled by
/// Model::forward. Threads: the compute thread.
class Cache {
public:
    explicit Cache(std::vector<std::unique_ptr<mixers::MixerCache>> layers) : layers_(std::move(layers)) {}

    std::int64_t length() const { return length_; }  ///< tokens held, of each sequence
    std::int64_t batch() const { return batch_; }    ///< sequences; 0 while empty
    std::int64_t bytes() const {
        std::int64_t sum = 0;
        for (const auto& layer : layers_) sum += layer->bytes();
        return sum;
    }
    std::unique_ptr<Cache> clone() const {
        std::vector<std::unique_ptr<mixers::MixerCache>> copies;
        for (const auto& layer : layers_) copies.push_back(layer->clone());
        auto copy = std::make_unique<Cache>(std::move(copies));
        copy->length_ = length_;
        copy->batch_ = batch_;
        copy->spoiled_ = spoiled_;
        return copy;
    }

    /// The cache of sequences [n] int64 of its batch, in this order; one may repeat.
    std::unique_ptr<Cache> chosen(const at::Tensor& sequences) const {
        std::vector<std::unique_ptr<mixers::MixerCache>> copies;
        for (const auto& layer : layers_) copies.push_back(layer->chosen(sequences));
        auto copy = std::make_unique<Cache>(std::move(copies));
        copy->length_ = length_;
        copy->batch_ = batch_ == 0 ? 0 : sequences.numel();
        copy->spoiled_ = spoiled_;
        return copy;
    }

    mixers::MixerCache& layer(std::size_t index) { return *layers_[index]; }
    std::size_t layers() const { return layers_.size(); }
    /// The stack calls it when a forward pass has added `tokens` to every layer.
    void advance(std::int64_t batch, std::int64_t tokens) {
        batch_ = batch;
        length_ += tokens;
    }
    /// True if drop(tokens) leaves the cache of the earlier tokens alone.
    bool can_drop(std::int64_t tokens) const {
        return !spoiled_ && tokens <= length_ &&
               std::all_of(layers_.begin(), layers_.end(), [&](const auto& layer) { return layer->can_drop(tokens); });
    }
    /// Forgets the last tokens of each sequence; after can_drop(tokens) alone.
    void drop(std::int64_t tokens) {
        for (const auto& layer : layers_) layer->drop(tokens);
        length_ -= tokens;
    }
    /// A forward pass that ended early has filled some layers and not others: such a cache is refused from then on.
    void spoil() { spoiled_ = true; }
    bool spoiled() const { return spoiled_; }

private:
    std::vector<std::unique_ptr<mixers::MixerCache>> layers_;
    std::int64_t length_ = 0;
    std::int64_t batch_ = 0;
    bool spoiled_ = false;
};

/// One forward pass over a cache (null: none): it is spoiled unless the pass is done.
class CachePass {
public:
    explicit CachePass(Cache* cache) : cache_(cache) {}
    CachePass(const CachePass&) = delete;
    CachePass& operator=(const CachePass&) = delete;
    ~CachePass() {
        if (cache_) cache_->spoil();
    }
    void done(std::int64_t batch, std::int64_t tokens) {
        if (cache_) cache_->advance(batch, tokens);
        cache_ = nullptr;
    }

private:
    Cache* cache_;
};

}  // namespace headscope::model

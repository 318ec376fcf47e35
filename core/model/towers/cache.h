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
        for (const auto& layer : layers_) sum += layer ? layer->bytes() : 0;
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

    /// The same for one pass that continues, behind the pass that fills this cache with its first `tokens` tokens. A
    /// layer is chosen when that pass reads it and dropped behind it (leave()), here once all such caches have read it:
    /// make all before the first is read. Their passes may run together with the one that fills this cache, which has
    /// to outlive them.
    std::unique_ptr<Cache> chosen_in_turn(const at::Tensor& sequences, std::int64_t tokens) {
        auto made = std::make_unique<Cache>(std::vector<std::unique_ptr<mixers::MixerCache>>(layers_.size()));
        made->source_ = this;
        made->sequences_ = sequences;
        made->length_ = tokens;
        made->batch_ = sequences.numel();
        readers_.resize(layers_.size());
        for (std::size_t& count : readers_) ++count;
        return made;
    }

    mixers::MixerCache& layer(std::size_t index) {
        if (source_ && !layers_[index]) layers_[index] = source_->read_in_turn(index, sequences_);
        return *layers_[index];
    }
    /// The pass needs no layer before `index` any more.
    void leave(std::size_t index) {
        if (!source_) return;
        for (std::size_t i = 0; i < index; ++i) layers_[i].reset();
        spoil();
    }
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
    /// A layer for one of chosen_in_turn().
    std::unique_ptr<mixers::MixerCache> read_in_turn(std::size_t index, const at::Tensor& sequences) {
        auto chosen = layers_[index]->chosen(sequences);
        if (--readers_[index] == 0) {
            layers_[index].reset();
            spoil();
        }
        return chosen;
    }

    std::vector<std::unique_ptr<mixers::MixerCache>> layers_;  ///< null: dropped, or not chosen yet
    std::int64_t length_ = 0;
    std::int64_t batch_ = 0;
    bool spoiled_ = false;
    Cache* source_ = nullptr;           ///< of a cache made by chosen_in_turn()
    at::Tensor sequences_;              ///< of the source's batch
    std::vector<std::size_t> readers_;  ///< by layer: caches that have yet to read it
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

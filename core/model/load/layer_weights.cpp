// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/load/layer_weights.h"

#include <malloc.h>

#include <algorithm>
#include <utility>

#include "core/checkpoint/not_finite.h"
#include "core/checkpoint/torch_types.h"
#include "core/model/device.h"

namespace headscope::model {
namespace {

using checkpoint::StoredTensor;
using Want = TensorPlan::Want;

constexpr std::int64_t kSmall = 256;  ///< numbers of a matrix that stays; vectors do, too

std::int64_t elements(const std::vector<std::int64_t>& shape) {
    std::int64_t product = 1;
    for (const std::int64_t size : shape) product *= size;
    return product;
}

}  // namespace

LayerWeights::LayerWeights(TensorPlan& plan, std::shared_ptr<const checkpoint::Checkpoint> file,
                           checkpoint::LoadAs precision, Residence residence, Progress* progress,
                           const Cancellation* cancellation)
    : wants_(plan.wants()),
      file_(std::move(file)),
      precision_(precision),
      residence_(residence),
      buffer_(file_, precision),
      ahead_([this](std::int64_t layer, const Cancellation& stop) { return read(layer, stop); }) {
    const Cancellation never;
    const Cancellation& stop = cancellation ? *cancellation : never;
    choose();
    plan.load(precision, progress, cancellation, [this](std::size_t want) { return deferred_.contains(want); });
    not_finite_ = plan.report().not_finite;
    make_tables(stop);
    lay_out();
    find_products();
    if (residence_ == Residence::stream) return;
    std::size_t done = 0;
    for (const auto& [layer, places] : layers_) {
        if (progress) {
            progress->advance(static_cast<double>(done++), static_cast<double>(layers_.size()),
                              "load layer " + std::to_string(layer));
        }
        held_[layer] = read(layer, stop);
        count(layer, held_[layer]);
        if (LayerExperts* experts = this->experts(layer)) experts->hold(stop);
    }
}

LayerExperts* LayerWeights::experts(std::int64_t layer) const {
    const auto found = experts_.find(layer);
    return found == experts_.end() ? nullptr : found->second.get();
}

/// Parts of one tensor of the model stay, or are deferred, together.
void LayerWeights::choose() {
    std::map<const at::Tensor*, std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < wants_.size(); ++i) {
        const Want& want = wants_[i];
        if (want.into && (want.layer >= 0 || want.table)) groups[want.into].push_back(i);
    }
    for (const auto& [into, group] : groups) {
        const Want& first = wants_[group.front()];
        const std::vector<std::int64_t> shape = buffer_.memory_shape(first);
        if (shape.size() < 2 || elements(shape) <= kSmall) continue;
        const bool as_stored = std::all_of(group.begin(), group.end(), [this](std::size_t i) {
            const Want& want = wants_[i];
            const checkpoint::TensorInfo& info = file_->tensor(want.tensor);
            return !info.packed && checkpoint::torch_type(info.type) == buffer_.type_of(want);
        });
        if (as_stored && residence_ == Residence::file) continue;
        deferred_.insert(group.begin(), group.end());
    }
}

void LayerWeights::make_tables(const Cancellation& cancellation) {
    for (const std::size_t i : deferred_) {
        const Want& want = wants_[i];
        if (!want.table) continue;
        std::shared_ptr<RowTable>& table = tables_[want.tensor];
        if (!table) {
            table = std::make_shared<RowTable>(file_, want.tensor, buffer_.type_of(want), residence_ == Residence::file,
                                               cancellation);
        }
        *want.table = table;
    }
}

void LayerWeights::lay_out() {
    std::map<std::pair<std::int64_t, const at::Tensor*>, std::int64_t> begins;
    std::map<std::pair<std::int64_t, bool>, std::int64_t> sizes;
    for (const std::size_t i : deferred_) {
        const Want& want = wants_[i];
        if (want.table) continue;
        if (want.after_mixer) in_steps_.insert(want.layer);
        std::int64_t& size = sizes[{want.layer, want.after_mixer}];
        const auto [begin, is_new] = begins.emplace(std::pair(want.layer, want.into), size);
        if (is_new) size += buffer_.room_of(want);
        buffer_.reserve(size);
        std::vector<Place>& places = layers_[want.layer];
        if (!LayerExperts::takes(*file_, want)) {
            places.push_back({i, begin->second});
            continue;
        }
        std::unique_ptr<LayerExperts>& experts = experts_[want.layer];
        if (!experts) experts = std::make_unique<LayerExperts>(file_, buffer_, not_finite_);
        experts->add(want, begin->second);
    }
}

void LayerWeights::find_products() {
    if (precision_ != checkpoint::LoadAs::float32 && precision_ != checkpoint::LoadAs::stored) return;
    for (const auto& [layer, places] : layers_) {
        std::map<const at::Tensor*, Product> groups;
        for (std::size_t i = 0; i < places.size(); ++i) groups[wants_[places[i].want].into].push_back(i);
        for (auto& [into, group] : groups) {
            // Tensors below each other fill the matrix in the order of their rows.
            std::sort(group.begin(), group.end(), [&](std::size_t a, std::size_t b) {
                return wants_[places[a].want].row < wants_[places[b].want].row;
            });
            const bool all = std::all_of(group.begin(), group.end(), [&](std::size_t i) {
                const Want& want = wants_[places[i].want];
                return want.packed && !want.transposed && want.heads == 0 && PackedMatrix::takes(*file_, want.tensor);
            });
            if (all) products_[layer].push_back(std::move(group));
        }
    }
}

void LayerWeights::set_products(std::int64_t layer, const Parts& parts) {
    const auto found = products_.find(layer);
    if (found == products_.end()) return;
    std::vector<std::shared_ptr<const PackedMatrix>> made;
    std::vector<std::shared_ptr<const PackedMatrix>>& matrices =
        residence_ == Residence::file ? held_products_[layer] : made;
    if (matrices.empty()) {
        for (const Product& product : found->second) {
            std::vector<std::shared_ptr<const StoredTensor>> stored;
            for (const std::size_t i : product) stored.push_back(parts[i]);
            matrices.push_back(std::make_shared<PackedMatrix>(std::move(stored)));
        }
    }
    for (std::size_t p = 0; p < matrices.size(); ++p)
        *wants_[layers_.at(layer)[found->second[p].front()].want].packed = matrices[p];
}

LayerWeights::Parts LayerWeights::read(std::int64_t layer, const Cancellation& cancellation) const {
    Parts parts;
    for (const Place& place : layers_.at(layer)) {
        const Want& want = wants_[place.want];
        parts.push_back(std::make_shared<StoredTensor>(*file_, want.tensor, cancellation));
    }
    return parts;
}

void LayerWeights::count(std::int64_t layer, const Parts& parts) {
    if (!counted_.insert(layer).second) return;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const Want& want = wants_[layers_.at(layer)[i].want];
        add_not_finite(not_finite_, want.tensor, parts[i]->not_finite(), elements(want.sizes()));
    }
}

const LayerWeights::Parts& LayerWeights::parts(std::int64_t layer) const {
    return residence_ == Residence::stream ? read_ : held_.at(layer);
}

void LayerWeights::fill(bool after_mixer, const Cancellation* cancellation) {
    const bool is_first = !entered_few_ && unpacked_.emplace(entered_, after_mixer).second;
    if (LayerExperts* experts = this->experts(entered_); experts && experts->after_mixer() == after_mixer)
        experts->enter();
    const std::vector<Place>& places = layers_.at(entered_);
    const Parts& parts = this->parts(entered_);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (cancellation) cancellation->check();
        const Want& want = wants_[places[i].want];
        if (want.after_mixer != after_mixer || (want.packed && *want.packed)) continue;
        const at::Tensor numbers = buffer_.fill(want, places[i].begin, *parts[i]);
        if (!is_first || !parts[i]->is_made()) continue;
        add_not_finite(not_finite_, want.tensor, checkpoint::count_not_finite(numbers), elements(want.sizes()));
    }
    if (!device_.is_cpu()) move(entered_, after_mixer);
}

void LayerWeights::set_device(const at::Device& device) {
    leave();
    device_ = device;
}

/// Each matrix once, after all its parts are filled.
void LayerWeights::move(std::int64_t layer, bool after_mixer) const {
    for (const Place& place : layers_.at(layer)) {
        const Want& want = wants_[place.want];
        if (want.after_mixer == after_mixer) *want.into = on_device(*want.into, device_);
    }
}

void LayerWeights::enter(std::int64_t layer, PassSize size, const Cancellation* cancellation) {
    const bool few = size == PassSize::few;
    if (layer == entered_ && few == entered_few_ && holds_mixers_) return;
    leave();
    if (!layers_.contains(layer)) return;
    if (residence_ == Residence::stream) read_ = ahead_.take(layer, cancellation);
    count(layer, parts(layer));
    for (const auto& [tensor, table] : tables_) table->expect_few(few);
    entered_ = layer;
    entered_few_ = few;
    entered_many_ = size == PassSize::many;
    if (few) set_products(layer, parts(layer));
    const bool in_steps = in_steps_.contains(layer);
    // Only written pages take memory. Fresh ones leave the rest of the room to activations.
    if (in_steps && entered_many_) buffer_.release();
    fill(false, cancellation);
    holds_mixers_ = true;
    if (residence_ != Residence::stream) return;
    // Converted parts go before the next layer comes into memory.
    for (std::size_t i = 0; i < read_.size(); ++i)
        if (!wants_[layers_.at(layer)[i].want].after_mixer) read_[i].reset();
    if (!in_steps) read_.clear();
    if (const auto next = layers_.upper_bound(layer); next != layers_.end()) ahead_.start(next->first);
}

void LayerWeights::enter_feed_forward(const Cancellation* cancellation) {
    if (entered_ < 0 || holds_feed_forward_ || !in_steps_.contains(entered_)) return;
    for (const Place& place : layers_.at(entered_))
        if (const Want& want = wants_[place.want]; !want.after_mixer) *want.into = at::Tensor();
    holds_mixers_ = false;
    // The heap keeps memory that activations of the mixers freed.
    if (entered_many_) ::malloc_trim(0);
    fill(true, cancellation);
    holds_feed_forward_ = true;
    read_.clear();
}

void LayerWeights::leave() {
    if (entered_ < 0) return;
    for (const Place& place : layers_.at(entered_)) {
        const Want& want = wants_[place.want];
        *want.into = at::Tensor();
        if (want.packed) want.packed->reset();
    }
    if (LayerExperts* experts = this->experts(entered_)) experts->leave();
    entered_ = -1;
    holds_mixers_ = holds_feed_forward_ = false;
    read_.clear();
}

void LayerWeights::release() {
    leave();
    // Passes of few tokens follow each other soon.
    if (residence_ == Residence::stream || !entered_few_) buffer_.release();
}

void LayerWeights::release_tables() {
    for (const auto& [tensor, table] : tables_) table->release();
}

}  // namespace headscope::model

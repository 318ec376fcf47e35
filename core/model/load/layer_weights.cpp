// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/load/layer_weights.h"

#include <malloc.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/io/input_file.h"
#include "core/base/io/uncached_reads.h"
#include "core/checkpoint/not_finite.h"
#include "core/checkpoint/torch_types.h"
#include "core/model/device.h"
#include "core/model/load/memory.h"
#include "core/model/load/model_device.h"

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

double bytes_of_files(const checkpoint::Checkpoint& file) {
    double bytes = 0;
    for (const InputFile& one : file.open_files()) bytes += static_cast<double>(one.size());
    return bytes;
}

}  // namespace

LayerWeights::LayerWeights(TensorPlan& plan, std::shared_ptr<const checkpoint::Checkpoint> file,
                           checkpoint::LoadAs precision, Residence residence, Progress* progress,
                           const Cancellation* cancellation)
    : wants_(plan.wants()),
      file_(std::move(file)),
      precision_(precision),
      residence_(residence),
      uncached_(residence == Residence::stream && streams_uncached(bytes_of_files(*file_))),
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
        if (as_stored && residence_ == Residence::file && model_device().is_cpu()) continue;
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
    // Experts of a tensor are read one by one where all its parts can be.
    std::set<const at::Tensor*> whole;
    for (const std::size_t i : deferred_)
        if (!LayerExperts::takes(*file_, wants_[i])) whole.insert(wants_[i].into);
    std::map<std::pair<std::int64_t, const at::Tensor*>, std::int64_t> begins;
    std::map<std::pair<std::int64_t, bool>, std::int64_t> sizes;
    // Experts come last: the slots of a device end before them.
    for (const bool of_experts : {false, true}) {
        for (const std::size_t i : deferred_) {
            const Want& want = wants_[i];
            if (want.table || whole.contains(want.into) == of_experts) continue;
            if (want.after_mixer) in_steps_.insert(want.layer);
            std::int64_t& size = sizes[{want.layer, want.after_mixer}];
            const auto [begin, is_new] = begins.emplace(std::pair(want.layer, want.into), size);
            if (is_new) size += buffer_.room_of(want);
            buffer_.reserve(size);
            std::vector<Place>& places = layers_[want.layer];
            if (!of_experts) {
                slot_bytes_ = std::max(slot_bytes_, size);
                places.push_back({i, begin->second});
                continue;
            }
            std::unique_ptr<LayerExperts>& experts = experts_[want.layer];
            if (!experts) experts = std::make_unique<LayerExperts>(file_, buffer_, uncached_, not_finite_);
            experts->add(want, begin->second);
        }
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
    const UncachedReads scope(uncached_);
    const std::vector<Place>& places = layers_.at(layer);
    const auto begin_of = [&](std::size_t i) {
        const checkpoint::TensorInfo& info = file_->tensor(wants_[places[i].want].tensor);
        return std::pair(info.file, info.begin);
    };
    // In the order of the files, in which the system reads ahead.
    std::vector<std::size_t> order(places.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return begin_of(a) < begin_of(b); });
    Parts parts(places.size());
    for (const std::size_t i : order)
        parts[i] = std::make_shared<const StoredTensor>(*file_, wants_[places[i].want].tensor, cancellation);
    return parts;
}

void LayerWeights::count(std::int64_t layer, const Parts& parts) {
    const bool counts_mixers = counted_.emplace(layer, false).second;
    const bool counts_feed_forward = counted_.emplace(layer, true).second;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const Want& want = wants_[layers_.at(layer)[i].want];
        if (!(want.after_mixer ? counts_feed_forward : counts_mixers)) continue;
        add_not_finite(not_finite_, want.tensor, parts[i]->not_finite(), elements(want.sizes()));
    }
}

const LayerWeights::Parts& LayerWeights::parts(std::int64_t layer) const {
    return residence_ == Residence::stream ? read_ : held_.at(layer);
}

void LayerWeights::show(const Half& half, const at::Tensor& bytes) const {
    for (const Place& place : layers_.at(half.layer)) {
        const Want& want = wants_[place.want];
        if (want.after_mixer != half.after_mixer || (want.packed && *want.packed)) continue;
        *want.into = buffer_.view(bytes, want, place.begin);
    }
}

std::int64_t LayerWeights::write(const Half& half, const at::Tensor& bytes, const Source& source, const Counts& counts,
                                 std::vector<NotFinite>& found, const Cancellation& cancellation) const {
    const std::vector<Place>& places = layers_.at(half.layer);
    std::int64_t end = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
        const Want& want = wants_[places[i].want];
        if (want.after_mixer != half.after_mixer) continue;
        cancellation.check();
        const std::shared_ptr<const StoredTensor> stored = source(i);
        if (!stored) continue;
        const at::Tensor numbers = buffer_.write(bytes, want, places[i].begin, *stored);
        end = std::max(end, places[i].begin + buffer_.room_of(want));
        std::int64_t not_finite = 0;
        if (stored->is_made() && counts.made)
            not_finite = checkpoint::count_not_finite(numbers);
        else if (counts.stored)
            not_finite = stored->not_finite();
        add_not_finite(found, want.tensor, not_finite, elements(want.sizes()));
    }
    return end;
}

void LayerWeights::fill(bool after_mixer, const Cancellation* cancellation) {
    const Half half{entered_, after_mixer};
    const bool is_first = !entered_few_ && unpacked_.emplace(entered_, after_mixer).second;
    if (LayerExperts* experts = this->experts(entered_); experts && experts->after_mixer() == after_mixer)
        experts->enter();
    const std::vector<Place>& places = layers_.at(entered_);
    const Parts& parts = this->parts(entered_);
    const Source source = [&](std::size_t i) {
        const Want& want = wants_[places[i].want];
        return want.packed && *want.packed ? nullptr : parts[i];
    };
    const Cancellation never;
    show(half, buffer_.own_bytes());
    write(half, buffer_.own_bytes(), source, {false, is_first}, not_finite_, cancellation ? *cancellation : never);
    if (!device_.is_cpu()) move(entered_, after_mixer);
}

void LayerWeights::set_device(const at::Device& device) {
    leave();
    device_ = device;
    slots_.reset();
    if (device.is_cpu() || slot_bytes_ == 0) return;
    slots_ = CopySlots::open(device, slot_bytes_,
                             [this](std::int64_t piece, const at::Tensor& host, const Cancellation& cancellation) {
                                 return convert(piece, host, cancellation);
                             });
}

/// Each matrix once, after all its parts are filled.
void LayerWeights::move(std::int64_t layer, bool after_mixer) const {
    for (const Place& place : layers_.at(layer)) {
        const Want& want = wants_[place.want];
        if (want.after_mixer == after_mixer) *want.into = on_device(*want.into, device_);
    }
}

/// Matrices that are multiplied as stored are read by their layer; little is left to copy.
bool LayerWeights::has_slots(std::int64_t layer, bool few) const {
    return slots_ && !(few && products_.contains(layer));
}

/// A piece of CopySlots is half a layer: 2 * layer, and 1 for tensors after the mixers. The compute thread changes
/// counted_ and unpacked_ only while this does not run.
std::int64_t LayerWeights::convert(std::int64_t piece, const at::Tensor& host, const Cancellation& cancellation) {
    const UncachedReads scope(uncached_);
    const Half half{piece / 2, piece % 2 == 1};
    const std::pair<std::int64_t, bool> key(half.layer, half.after_mixer);
    const std::vector<Place>& places = layers_.at(half.layer);
    const auto held = held_.find(half.layer);
    const Source source = [&](std::size_t i) {
        return held != held_.end()
                   ? held->second[i]
                   : std::make_shared<const StoredTensor>(*file_, wants_[places[i].want].tensor, cancellation);
    };
    converted_not_finite_.clear();
    return write(half, host, source, {!counted_.contains(key), !unpacked_.contains(key)}, converted_not_finite_,
                 cancellation);
}

/// Shows half a layer, and starts with the next one.
void LayerWeights::take(std::int64_t layer, bool after_mixer, const Cancellation* cancellation) {
    const at::Tensor bytes = slots_->take(2 * layer + (after_mixer ? 1 : 0), cancellation);
    counted_.emplace(layer, after_mixer);
    unpacked_.emplace(layer, after_mixer);
    for (const NotFinite& one : converted_not_finite_)
        add_not_finite(not_finite_, one.tensor, one.numbers, one.elements);
    show({layer, after_mixer}, bytes);
    if (LayerExperts* experts = this->experts(layer); experts && experts->after_mixer() == after_mixer)
        experts->enter();
    if (!after_mixer && in_steps_.contains(layer)) return slots_->start(2 * layer + 1);
    const auto next = layers_.upper_bound(layer);
    if (next != layers_.end() && has_slots(next->first, entered_few_)) slots_->start(2 * next->first);
}

void LayerWeights::enter(std::int64_t layer, PassSize size, const Cancellation* cancellation) {
    const bool few = size == PassSize::few;
    if (layer == entered_ && few == entered_few_ && holds_mixers_) return;
    leave();
    if (!layers_.contains(layer)) return;
    in_slots_ = has_slots(layer, few);
    if (!in_slots_) {
        if (slots_) slots_->drop();
        if (residence_ == Residence::stream) read_ = ahead_.take(layer, cancellation);
        count(layer, parts(layer));
    }
    for (const auto& [tensor, table] : tables_) table->expect_few(few);
    entered_ = layer;
    entered_few_ = few;
    entered_many_ = size == PassSize::many;
    if (in_slots_) {
        take(layer, false, cancellation);
        holds_mixers_ = true;
        return;
    }
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
    if (in_slots_) {
        take(entered_, true, cancellation);
        holds_feed_forward_ = true;
        return;
    }
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
    if (residence_ != Residence::stream && entered_few_) return;
    buffer_.release();
    if (slots_) slots_->release();
}

void LayerWeights::release_tables() {
    for (const auto& [tensor, table] : tables_) table->release();
}

}  // namespace headscope::model

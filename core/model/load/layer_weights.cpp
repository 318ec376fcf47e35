// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/load/layer_weights.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/empty.h>

#include "core/checkpoint/not_finite.h"
#include "core/checkpoint/packed/packed_source.h"
#include "core/checkpoint/torch_types.h"

namespace headscope::model {
namespace {

using checkpoint::StoredTensor;
using Want = TensorPlan::Want;

constexpr std::int64_t kSmall = 256;   ///< numbers of a matrix that stays; vectors do, too
constexpr std::int64_t kAligned = 64;  ///< bytes, as LibTorch's own tensors begin

std::int64_t elements(const std::vector<std::int64_t>& shape) {
    std::int64_t product = 1;
    for (const std::int64_t size : shape) product *= size;
    return product;
}

}  // namespace

LayerWeights::LayerWeights(TensorPlan& plan, std::shared_ptr<const checkpoint::Checkpoint> file,
                           checkpoint::LoadAs precision, Residence residence, Progress* progress,
                           const Cancellation* cancellation)
    : wants_(plan.wants()), file_(std::move(file)), precision_(precision), residence_(residence) {
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
    }
}

LayerWeights::~LayerWeights() {
    stop_.request();
}

at::ScalarType LayerWeights::type_of(const Want& want) const {
    const checkpoint::DataType stored = file_->tensor(want.tensor).type;
    return checkpoint::torch_type(checkpoint::loaded_type(stored, want.precision(precision_))).value();
}

bool LayerWeights::lies_transposed(const Want& want) const {
    const auto& packed = file_->tensor(want.tensor).packed;
    return packed && packed->transposed && want.row < 0 && want.heads == 0;
}

/// Shape in memory of the tensor that the want fills.
std::vector<std::int64_t> LayerWeights::memory_shape(const Want& want) const {
    std::vector<std::int64_t> shape = want.sizes();
    if (want.row >= 0) shape.at(0) = want.rows;
    if (lies_transposed(want)) std::swap(shape.at(shape.size() - 1), shape.at(shape.size() - 2));
    return shape;
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
        const std::vector<std::int64_t> shape = memory_shape(first);
        if (shape.size() < 2 || elements(shape) <= kSmall) continue;
        const bool as_stored = std::all_of(group.begin(), group.end(), [this](std::size_t i) {
            const Want& want = wants_[i];
            const checkpoint::TensorInfo& info = file_->tensor(want.tensor);
            return !info.packed && checkpoint::torch_type(info.type) == type_of(want);
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
            table = std::make_shared<RowTable>(file_, want.tensor, type_of(want), residence_ == Residence::file,
                                               cancellation);
        }
        *want.table = table;
    }
}

void LayerWeights::lay_out() {
    std::map<std::pair<std::int64_t, const at::Tensor*>, std::int64_t> begins;
    std::map<std::int64_t, std::int64_t> sizes;
    for (const std::size_t i : deferred_) {
        const Want& want = wants_[i];
        if (want.table) continue;
        std::int64_t& size = sizes[want.layer];
        const auto [begin, is_new] = begins.emplace(std::pair(want.layer, want.into), size);
        if (is_new) {
            const std::int64_t bytes =
                elements(memory_shape(want)) * static_cast<std::int64_t>(c10::elementSize(type_of(want)));
            size += (bytes + kAligned - 1) / kAligned * kAligned;
        }
        layers_[want.layer].push_back({i, begin->second});
        largest_ = std::max(largest_, size);
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
        const std::int64_t number = parts[i]->not_finite();
        if (number > 0) not_finite_.push_back({want.tensor, number, elements(want.sizes())});
    }
}

at::Tensor LayerWeights::fill(const Place& place, const StoredTensor& stored) {
    const Want& want = wants_[place.want];
    const std::vector<std::int64_t> shape = memory_shape(want);
    const at::ScalarType type = type_of(want);
    const auto bytes = elements(shape) * static_cast<std::int64_t>(c10::elementSize(type));
    const at::Tensor whole = buffer_.narrow(0, place.begin, bytes).view(type).view(shape);
    if (want.heads > 0) {
        std::vector<std::int64_t> pieces{want.parts, want.heads, shape.at(0) / (want.parts * want.heads)};
        pieces.insert(pieces.end(), shape.begin() + 1, shape.end());
        stored.copy_to(whole.view(pieces).transpose(0, 1));
        *want.into = whole;
        return whole;
    }
    const at::Tensor own = want.row >= 0 ? whole.narrow(0, want.row, want.sizes().at(0)) : whole;
    if (!lies_transposed(want) && stored.is_transposed())
        own.copy_(stored.rows(0, own.size(0), type));
    else
        stored.copy_to(own);
    if (want.row >= 0)
        *want.into = whole;
    else
        *want.into = want.transposed != lies_transposed(want) ? whole.transpose(-1, -2) : whole;
    return own;
}

void LayerWeights::enter(std::int64_t layer, bool few, const Cancellation* cancellation) {
    if (layer == entered_ && few == entered_few_) return;
    leave();
    const auto places = layers_.find(layer);
    if (places == layers_.end()) return;
    Parts read_now;
    if (residence_ == Residence::stream) read_now = take(layer, cancellation);
    const Parts& parts = residence_ == Residence::stream ? read_now : held_.at(layer);
    count(layer, parts);
    for (const auto& [tensor, table] : tables_) table->expect_few(few);
    if (few) set_products(layer, parts);
    const bool is_first = !few && unpacked_.insert(layer).second;
    if (!buffer_.defined()) buffer_ = at::empty({largest_}, at::kByte);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (cancellation) cancellation->check();
        if (const auto* packed = wants_[places->second[i].want].packed; packed && *packed) continue;
        const at::Tensor numbers = fill(places->second[i], *parts[i]);
        if (!is_first || !parts[i]->packed()) continue;
        const Want& want = wants_[places->second[i].want];
        if (const std::int64_t number = checkpoint::count_not_finite(numbers); number > 0)
            not_finite_.push_back({want.tensor, number, elements(want.sizes())});
    }
    entered_ = layer;
    entered_few_ = few;
}

LayerWeights::Parts LayerWeights::take(std::int64_t layer, const Cancellation* cancellation) {
    Parts parts;
    if (reading_.valid() && ahead_ == layer) {
        parts = reading_.get();
    } else {
        if (reading_.valid()) reading_.wait();
        reading_ = {};
        const Cancellation never;
        parts = read(layer, cancellation ? *cancellation : never);
    }
    const auto next = layers_.upper_bound(layer);
    if (next == layers_.end()) return parts;
    ahead_ = next->first;
    reading_ = std::async(std::launch::async, [this, wanted = ahead_] { return read(wanted, stop_); });
    return parts;
}

void LayerWeights::leave() {
    if (entered_ < 0) return;
    for (const Place& place : layers_.at(entered_)) {
        const Want& want = wants_[place.want];
        *want.into = at::Tensor();
        if (want.packed) want.packed->reset();
    }
    entered_ = -1;
}

void LayerWeights::release() {
    leave();
    if (residence_ == Residence::stream) buffer_ = at::Tensor();
}

void LayerWeights::release_tables() {
    for (const auto& [tensor, table] : tables_) table->release();
}

}  // namespace headscope::model

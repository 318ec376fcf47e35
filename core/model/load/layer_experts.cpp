// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/load/layer_experts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/io/uncached_reads.h"
#include "core/checkpoint/adapter.h"
#include "core/checkpoint/not_finite.h"
#include "core/checkpoint/packed/packed_source.h"
#include "core/checkpoint/torch_types.h"

namespace headscope::model {

bool LayerExperts::takes(const checkpoint::Checkpoint& file, const TensorPlan::Want& want) {
    if (!want.experts || (file.adapter() && file.adapter()->changes(want.tensor))) return false;
    if (want.expert >= 0) return true;
    const auto first = checkpoint::entry_of(file.tensor(want.tensor), 0);
    return first && (first->packed || checkpoint::torch_type(first->type));
}

LayerExperts::LayerExperts(std::shared_ptr<const checkpoint::Checkpoint> file, LayerBuffer& buffer, bool uncached,
                           std::vector<NotFinite>& not_finite)
    : file_(std::move(file)),
      buffer_(buffer),
      uncached_(uncached),
      not_finite_(not_finite),
      ahead_([this](std::int64_t expert, const Cancellation& stop) { return read(expert, stop); }) {}

void LayerExperts::add(const TensorPlan::Want& want, std::int64_t begin) {
    *want.experts = this;
    const auto same = [&want](const Place& place) { return place.want->into == want.into; };
    if (std::none_of(shown_.begin(), shown_.end(), same)) shown_.push_back({&want, begin});
    if (want.expert >= 0) return places_[want.expert].push_back({&want, begin});
    for (std::int64_t expert = 0; expert < want.shape.front().size; ++expert) places_[expert].push_back({&want, begin});
}

LayerExperts::Stored LayerExperts::read(std::int64_t expert, const Cancellation& cancellation) const {
    const UncachedReads scope(uncached_);
    Stored stored;
    const auto places = places_.find(expert);
    if (places == places_.end()) return stored;
    for (const Place& place : places->second) {
        const checkpoint::TensorInfo& tensor = file_->tensor(place.want->tensor);
        const auto entry = place.want->expert < 0 ? checkpoint::entry_of(tensor, expert) : std::nullopt;
        stored.push_back(std::make_shared<checkpoint::StoredTensor>(*file_, entry ? *entry : tensor, cancellation));
    }
    return stored;
}

void LayerExperts::count(const TensorPlan::Want& want, std::int64_t numbers) {
    std::int64_t elements = 1;
    for (const std::int64_t size : want.sizes()) elements *= size;
    add_not_finite(not_finite_, want.tensor, numbers, elements);
}

void LayerExperts::hold(const Cancellation& cancellation) {
    for (const auto& [expert, places] : places_) {
        const Stored& stored = held_[expert] = read(expert, cancellation);
        for (std::size_t i = 0; i < places.size(); ++i) count(*places[i].want, stored[i]->not_finite());
    }
}

void LayerExperts::enter() {
    filled_.clear();
    for (const Place& place : shown_) buffer_.show(*place.want, place.begin);
}

void LayerExperts::leave() {
    for (const Place& place : shown_) *place.want->into = at::Tensor();
}

void LayerExperts::load(std::int64_t expert, std::int64_t next, const Cancellation* cancellation) {
    if (filled_.contains(expert)) return;
    const auto held = held_.find(expert);
    const Stored stored = held != held_.end() ? held->second : ahead_.take(expert, cancellation);
    if (held_.empty() && next >= 0 && !filled_.contains(next)) ahead_.start(next);
    const bool is_first = counted_.insert(expert).second;
    for (std::size_t i = 0; i < stored.size(); ++i) {
        const auto& [want, begin] = places_.at(expert)[i];
        const at::Tensor own = want->expert < 0 ? buffer_.fill_entry(*want, begin, expert, *stored[i])
                                                : buffer_.fill(*want, begin, *stored[i]);
        if (!is_first) continue;
        if (stored[i]->is_made())
            count(*want, checkpoint::count_not_finite(own));
        else if (held_.empty())
            count(*want, stored[i]->not_finite());
    }
    filled_.insert(expert);
}

}  // namespace headscope::model

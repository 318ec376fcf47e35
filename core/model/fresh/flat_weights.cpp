// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/fresh/flat_weights.h"

#include <algorithm>
#include <map>
#include <set>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "core/base/error.h"
#include "core/model/fresh/fresh_weights.h"

namespace headscope::model {
namespace {

/// Parts begin at whole cache lines, in bfloat16 too.
constexpr std::int64_t kAlignment = 32;

std::int64_t product(const std::vector<std::int64_t>& shape) {
    std::int64_t elements = 1;
    for (const std::int64_t size : shape) elements *= size;
    return elements;
}

checkpoint::LoadAs load_as(at::ScalarType type) {
    if (type == at::kFloat) return checkpoint::LoadAs::float32;
    if (type == at::kBFloat16) return checkpoint::LoadAs::bfloat16;
    if (type == at::kDouble) return checkpoint::LoadAs::float64;
    throw Error(ErrorCode::usage, "training", "expected weights of type float32, bfloat16 or float64", "found another");
}

}  // namespace

FlatWeights::FlatWeights(const TensorPlan& plan, const checkpoint::Checkpoint* file, at::ScalarType type,
                         std::uint64_t seed, Progress* progress, const Cancellation* cancellation) {
    load_as(type);
    std::vector<Destination> all = destinations(plan);
    lay_out(all, type);
    for (const Destination& destination : all) place(destination, type);
    fill(plan, file, seed, progress, cancellation);
}

std::vector<FlatWeights::Destination> FlatWeights::destinations(const TensorPlan& plan) {
    std::vector<Destination> all;
    std::set<std::string> names;
    for (const TensorPlan::Want& want : plan.wants()) {
        if (!names.insert(want.tensor).second) {
            const auto first = std::find_if(all.begin(), all.end(), [&](const Destination& one) {
                return one.wants.front()->tensor == want.tensor && want.row < 0 && one.wants.front()->row < 0 &&
                       one.wants.front()->sizes() == want.sizes();
            });
            if (first != all.end()) {
                first->others.push_back(want.into);
                continue;
            }
            throw Error(ErrorCode::unsupported, escaped(want.tensor), "expected a tensor of its own to train",
                        "found one that is shared");
        }
        const auto same = [&](const Destination& one) { return one.wants.front()->into == want.into; };
        auto found = std::find_if(all.begin(), all.end(), same);
        if (found == all.end()) {
            Destination made;
            made.shape = want.sizes();
            if (want.row >= 0) made.shape[0] = want.rows;
            made.trained = !want.given();
            made.decays = made.shape.size() > 1 && want.initial != Initial::bias && want.initial != Initial::gain &&
                          want.initial != Initial::rate_log;
            found = all.insert(all.end(), std::move(made));
        }
        found->wants.push_back(&want);
    }
    return all;
}

void FlatWeights::lay_out(std::vector<Destination>& all, at::ScalarType type) {
    std::int64_t size = 0;
    for (const bool decays : {true, false}) {
        for (Destination& one : all) {
            if (!one.trained || one.decays != decays) continue;
            one.offset = size;
            size += (product(one.shape) + kAlignment - 1) / kAlignment * kAlignment;
        }
        if (decays) decayed_ = size;
    }
    weights_ = at::zeros({size}, type);
    gradients_ = at::zeros({size}, type);
}

void FlatWeights::place(const Destination& destination, at::ScalarType type) {
    const TensorPlan::Want& first = *destination.wants.front();
    const auto part_of = [&](const at::Tensor& flat) {
        return flat.narrow(0, destination.offset, product(destination.shape)).view(destination.shape);
    };
    at::Tensor stored;
    if (destination.trained) {
        stored = part_of(weights_);
        const at::Tensor gradient = part_of(gradients_);
        at::Tensor leaf = (first.transposed ? stored.t() : stored).detach();
        leaf.set_requires_grad(true);
        leaf.mutable_grad() = first.transposed ? gradient.t() : gradient;
        *first.into = leaf;
        for (at::Tensor* other : destination.others) *other = leaf;
        leaves_.push_back(leaf);
    } else {
        const at::ScalarType own = first.exact && type == at::kBFloat16 ? at::kFloat : type;
        stored = at::empty(destination.shape, first.initial == Initial::ids ? at::kLong : own);
        *first.into = stored;
        given_.push_back(stored);
    }
    for (const TensorPlan::Want* want : destination.wants) {
        at::Tensor value = want->row < 0 ? stored : stored.narrow(0, want->row, want->shape.front().size);
        const std::vector<std::int64_t> shape = value.sizes().vec();
        // The model has the first piece of all heads before the second; the file goes head by head.
        if (want->heads > 0) value = value.unflatten(0, {want->parts, want->heads, -1}).transpose(0, 1);
        parameters_.push_back({want->tensor, value, shape, destination.decays, destination.trained});
    }
}

std::map<const c10::TensorImpl*, at::Tensor> FlatWeights::to(const at::Device& device) {
    const auto like = [](const at::Tensor& part, const at::Tensor& whole) {
        return whole.as_strided(part.sizes(), part.strides(), part.storage_offset());
    };
    std::map<const c10::StorageImpl*, at::Tensor> wholes;  // by the memory that parts of it lie in
    const auto move = [&](at::Tensor& whole) {
        const c10::StorageImpl* memory = whole.storage().unsafeGetStorageImpl();
        whole = whole.to(device);
        wholes[memory] = whole;
    };
    const auto moved = [&](const at::Tensor& part) {
        return like(part, wholes.at(part.storage().unsafeGetStorageImpl()));
    };
    const std::vector<at::Tensor> kept{weights_, gradients_};  // their memory's addresses stay taken
    std::vector<at::Tensor> given = given_;
    move(weights_);
    move(gradients_);
    for (at::Tensor& one : given) move(one);
    std::map<const c10::TensorImpl*, at::Tensor> counterparts;
    for (std::size_t i = 0; i < given.size(); ++i) counterparts[given_[i].unsafeGetTensorImpl()] = given[i];
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& leaf : leaves_) {
        at::Tensor own = moved(leaf.detach()).detach();
        own.set_requires_grad(true);
        own.mutable_grad() = moved(leaf.grad());
        leaves.push_back(own);
        counterparts[leaf.unsafeGetTensorImpl()] = own;
    }
    for (Parameter& parameter : parameters_) parameter.value = moved(parameter.value);
    leaves_ = std::move(leaves);
    given_ = std::move(given);
    return counterparts;
}

at::Tensor FlatWeights::stored(const TensorPlan::Want& want, const checkpoint::Checkpoint& file,
                               const Cancellation* cancellation) const {
    const checkpoint::LoadAs as = want.precision(load_as(weights_.scalar_type()));
    return cancellation ? file.load(want.tensor, as, *cancellation) : file.load(want.tensor, as);
}

void FlatWeights::fill(const TensorPlan& plan, const checkpoint::Checkpoint* file, std::uint64_t seed,
                       Progress* progress, const Cancellation* cancellation) const {
    std::map<std::string, at::Tensor> values;
    for (const Parameter& parameter : parameters_) values[parameter.name] = parameter.value;
    double done = 0;
    const auto all = static_cast<double>(plan.elements());
    for (const TensorPlan::Want& want : plan.wants()) {
        if (want.into == nullptr) continue;
        if (cancellation) cancellation->check();
        const at::Tensor& value = values.at(want.tensor);
        if (progress) progress->advance(done, all, "load " + escaped(want.tensor));
        done += static_cast<double>(value.numel());
        if (!want.fresh) {
            value.copy_(stored(want, *file, cancellation).reshape(value.sizes()));
            continue;
        }
        // Regrouped heads are drawn in the file's order.
        const at::Tensor whole = value.is_contiguous() ? value : at::empty(want.sizes(), value.options());
        fill_fresh(want, plan.config(), seed, whole);
        if (!value.is_contiguous()) value.copy_(whole.view(value.sizes()));
    }
}

}  // namespace headscope::model

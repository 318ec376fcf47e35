// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/experts/switch_experts.h"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/checkpoint/gguf/block_tensor.h"
#include "core/checkpoint/packed/changes.h"
#include "core/checkpoint/packed/finder.h"
#include "core/checkpoint/packed/packed_source.h"
#include "core/checkpoint/packed/part_checks.h"

namespace headscope::checkpoint {
namespace {

constexpr std::string_view kSwitch = ".switch_mlp.";
constexpr std::int64_t kMostSwitchExperts = 1 << 16;

constexpr std::string_view kGateWeight = "gate_proj.weight";
constexpr std::string_view kOssExperts = ".mlp.experts.", kLlama4Experts = ".feed_forward.experts.";

/// Empty where a part of the stack does not lie in the files by itself.
std::vector<TensorInfo> experts_of(const TensorInfo& stack) {
    std::vector<TensorInfo> experts;
    const std::size_t at = stack.name.rfind(kSwitch);
    const std::string begin = stack.name.substr(0, at) + ".experts.", end = stack.name.substr(at + kSwitch.size());
    for (std::int64_t number = 0; number < stack.shape[0]; ++number) {
        std::optional<TensorInfo> expert = entry_of(stack, number);
        if (!expert) return {};
        expert->name = begin + std::to_string(number) + "." + end;
        experts.push_back(*std::move(expert));
    }
    return experts;
}

/// Empty where the numbers do not follow each other in the files.
std::optional<PackedSource> stack_source(const TensorInfo& info) {
    if (info.packed) return info.packed->transposed ? std::nullopt : std::optional(*info.packed);
    const std::pair<DataType, gguf::BlockType> plain[] = {{DataType::f32, gguf::BlockType::f32},
                                                          {DataType::f16, gguf::BlockType::f16},
                                                          {DataType::bf16, gguf::BlockType::bf16}};
    for (const auto& [type, block] : plain) {
        if (info.type != type || !info.strides.empty()) continue;
        const gguf::Tensor tensor{info.name, block, info.shape, info.file, info.begin, info.bytes};
        return PackedSource{gguf::block_tensor(tensor, "weights"), false, std::string(name(type)), {info}};
    }
    return std::nullopt;
}

/// `made` has the parts of `first` and, if there is one, of `second`.
TensorInfo stack_info(const std::string& name, const TensorInfo& stored, const PackedSource& first,
                      const PackedSource* second, PackedPointer made, bool transposed) {
    PackedSource source{std::move(made), transposed, first.type, first.parts};
    if (second) source.parts.insert(source.parts.end(), second->parts.begin(), second->parts.end());
    TensorInfo info = packed_info(name, std::move(source));
    info.type = stored.type;  // float32 where it is quantized
    return info;
}

/// Tensors that take the place of others.
class StackJoin {
public:
    StackJoin(std::map<std::string, TensorInfo>& tensors, std::string stem)
        : tensors_(tensors), stem_(std::move(stem)) {}

    const TensorInfo* find(std::string_view end) const {
        const auto found = tensors_.find(stem_ + std::string(end));
        return found == tensors_.end() ? nullptr : &found->second;
    }
    const TensorInfo& require(std::string_view end, const std::vector<std::int64_t>& shape) const {
        const TensorInfo* info = find(end);
        if (info && info->shape == shape) return *info;
        throw Error(ErrorCode::mismatch, packed_place(stem_ + std::string(end)),
                    "expected a stack of experts of shape " + shape_text(shape) + ", as " + std::string(kGateWeight),
                    "found " + (info ? shape_text(info->shape) : std::string("none")));
    }
    void put(TensorInfo info, std::initializer_list<std::string_view> ends) {
        if (tensors_.contains(info.name)) {
            throw Error(ErrorCode::mismatch, packed_place(stem_ + std::string(*ends.begin())),
                        "expected stacks of gate and up, or one of both", "found both, and " + escaped(info.name));
        }
        for (const std::string_view end : ends) tensors_.erase(stem_ + std::string(end));
        std::string own = info.name;
        tensors_.emplace(std::move(own), std::move(info));
    }
    std::string name(const char* end) const { return stem_ + end; }

private:
    std::map<std::string, TensorInfo>& tensors_;
    std::string stem_;
};

void join_stacks(StackJoin& join, bool alternates) {
    const TensorInfo gate = *join.find(kGateWeight), up = join.require("up_proj.weight", gate.shape);
    const std::int64_t experts = gate.shape[0], inner = gate.shape[1], hidden = gate.shape[2];
    const TensorInfo down = join.require("down_proj.weight", {experts, hidden, inner});
    const auto first = stack_source(gate), second = stack_source(up), last = stack_source(down);
    if (!first || !second || !last || gate.type != up.type) return;
    const auto place = [alternates, inner](std::int64_t row) {
        if (alternates) return SourceRow{static_cast<std::size_t>(row % 2), row / 2};
        const std::int64_t expert = row / (2 * inner), own = row % (2 * inner);
        return SourceRow{static_cast<std::size_t>(own / inner), expert * inner + own % inner};
    };
    join.put(stack_info(join.name("gate_up_proj"), gate, *first, &*second,
                        with_rows({first->tensor, second->tensor}, {experts, 2 * inner, hidden}, place), true),
             {kGateWeight, "up_proj.weight"});
    join.put(stack_info(join.name("down_proj"), down, *last, nullptr, last->tensor, true), {"down_proj.weight"});
}

void join_biases(StackJoin& join) {
    if (const TensorInfo* found = join.find("gate_proj.bias")) {
        const TensorInfo gate = *found, up = join.require("up_proj.bias", gate.shape);
        const auto first = stack_source(gate), second = stack_source(up);
        if (first && second && gate.shape.size() == 2 && gate.type == up.type) {
            join.put(stack_info(join.name("gate_up_proj_bias"), gate, *first, &*second,
                                interleaved(first->tensor, second->tensor), false),
                     {"gate_proj.bias", "up_proj.bias"});
        }
    }
    if (const TensorInfo* found = join.find("down_proj.bias")) {
        TensorInfo down = *found;
        down.name = join.name("down_proj_bias");
        join.put(std::move(down), {"down_proj.bias"});
    }
}

}  // namespace

void split_switch_experts(std::map<std::string, TensorInfo>& tensors) {
    std::vector<std::string> stacks;
    for (const auto& [name, info] : tensors) {
        if (name.find(kSwitch) == std::string::npos || info.shape.size() < 2 || info.bytes == 0) continue;
        if (info.shape[0] <= kMostSwitchExperts) stacks.push_back(name);
    }
    for (const std::string& name : stacks) {
        std::vector<TensorInfo> experts = experts_of(tensors.at(name));
        if (experts.empty()) continue;
        for (TensorInfo& expert : experts) {
            if (tensors.contains(expert.name)) {
                throw Error(ErrorCode::mismatch, packed_place(name), "expected experts in a stack, or one by one",
                            "found both, and " + escaped(expert.name));
            }
            std::string own = expert.name;
            tensors.emplace(std::move(own), std::move(expert));
        }
        tensors.erase(name);
    }
}

void join_expert_stacks(std::map<std::string, TensorInfo>& tensors) {
    std::vector<std::string> stems;
    for (const auto& [name, info] : tensors) {
        const bool is_stack = name.ends_with(kGateWeight) && info.shape.size() == 3 && info.elements > 0;
        if (is_stack) stems.push_back(name.substr(0, name.size() - kGateWeight.size()));
    }
    for (const std::string& stem : stems) {
        const bool is_oss = stem.ends_with(kOssExperts);
        if (!is_oss && !stem.ends_with(kLlama4Experts)) continue;
        StackJoin join(tensors, stem);
        join_stacks(join, is_oss);
        if (is_oss) join_biases(join);
    }
}

}  // namespace headscope::checkpoint

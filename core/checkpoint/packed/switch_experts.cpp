// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/packed/switch_experts.h"

#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/checkpoint/packed/packed_source.h"
#include "core/checkpoint/packed/part_checks.h"

namespace headscope::checkpoint {
namespace {

constexpr std::string_view kSwitch = ".switch_mlp.";
constexpr std::int64_t kMostSwitchExperts = 1 << 16;

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

}  // namespace headscope::checkpoint

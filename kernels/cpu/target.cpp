// SPDX-License-Identifier: GPL-3.0-or-later
#include <hwy/targets.h>

#include <algorithm>

#include "kernels/cpu/attention/attention.h"

namespace headscope::kernels::cpu {
namespace {

const std::vector<std::int64_t>& targets() {
    static const std::vector<std::int64_t> found = hwy::SupportedAndGeneratedTargets();
    return found;
}

}  // namespace

const std::vector<std::string>& target_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> result;
        for (const std::int64_t target : targets()) result.emplace_back(hwy::TargetName(target));
        return result;
    }();
    return names;
}

void choose_target(const std::string& name) {
    const auto& names = target_names();
    const auto at = std::find(names.begin(), names.end(), name);
    // Highway's own switch for running one target after another; 0 gives the choice back to it.
    hwy::SetSupportedTargetsForTest(at == names.end() ? 0 : targets()[static_cast<std::size_t>(at - names.begin())]);
}

}  // namespace headscope::kernels::cpu

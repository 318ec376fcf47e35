// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/run_folder.h"

#include <array>
#include <charconv>
#include <cstdio>

#include "core/base/input_file.h"

namespace headscope::training {

bool RunFolder::exists() const {
    return ends_at_regular_file(job());
}

std::string snapshot_name(std::int64_t step) {
    std::array<char, 32> buffer{};
    std::snprintf(buffer.data(), buffer.size(), "step-%06lld", static_cast<long long>(step));
    return buffer.data();
}

std::int64_t snapshot_step(const std::string& name) {
    constexpr std::string_view prefix = "step-";
    if (!name.starts_with(prefix)) return -1;
    std::int64_t step = -1;
    const char* end = name.data() + name.size();
    const auto [at, error] = std::from_chars(name.data() + prefix.size(), end, step);
    return error == std::errc() && at == end && step >= 0 && snapshot_name(step) == name ? step : -1;
}

}  // namespace headscope::training

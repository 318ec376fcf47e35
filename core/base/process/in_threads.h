// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

namespace headscope {

/// Calls `work` in `count` threads at once and waits for all; in fewer if the system refuses more, at least in the
/// calling one, so `work` takes its items from a shared place. Rethrows the first exception when all have ended;
/// `failed` lets the others end early.
void in_threads(std::int64_t count, const std::function<void(const std::atomic<bool>& failed)>& work);

/// Calls each of `work` once, in their order, in `count` threads; none after an exception.
void in_threads(std::int64_t count, const std::vector<std::function<void()>>& work);

}  // namespace headscope

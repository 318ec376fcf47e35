// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace headscope {

/// Calls `work` in `count` threads at once and waits for all: in fewer where the system refuses more, at the least in
/// the calling one, so `work` takes what is to be done from where all take it. The first exception that leaves one of
/// them is thrown here, when all have ended; `failed` tells the others of it, which may then end early.
void in_threads(std::int64_t count, const std::function<void(const std::atomic<bool>& failed)>& work);

}  // namespace headscope

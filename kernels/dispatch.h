// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

namespace headscope::kernels {

enum class Backend : std::uint8_t { cpu, reference };

/// What force_backend, or HEADSCOPE_KERNELS at the first use, asked for.
Backend chosen_backend();
/// Remembers for last_backend() what ran on this thread, in the backend's own words.
void note_backend(const std::string& name);

}  // namespace headscope::kernels

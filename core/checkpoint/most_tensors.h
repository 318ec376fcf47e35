// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>

namespace headscope::checkpoint {

/// Names of tensors that a file, or all shards of an index together, may have: three times what the largest models
/// have. A name of a few bytes takes some hundred bytes of memory.
constexpr std::size_t most_tensors = 500'000;

}  // namespace headscope::checkpoint

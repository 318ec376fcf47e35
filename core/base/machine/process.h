// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace headscope {

/// Tells glibc's allocator to keep what is freed (up to 2 GB) and to take large blocks from its heap as well. Without
/// it every large temporary tensor is new pages from the kernel, which cost more than the arithmetic on them. Call
/// it once, before the first tensor; memory that was used once stays with the process. Nothing elsewhere than glibc.
void keep_freed_memory();

}  // namespace headscope

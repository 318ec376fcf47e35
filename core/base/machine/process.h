// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace headscope {

/// Makes glibc's allocator keep freed memory (up to 2 GB) and serve large blocks from its heap. Otherwise each large
/// temporary tensor is new pages from the kernel, which cost more than the arithmetic on them. Call it once, before the
/// first tensor. Does nothing outside glibc.
void keep_freed_memory();

}  // namespace headscope

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/machine/process.h"

#if defined(__GLIBC__) || __has_include(<malloc.h>)
#include <malloc.h>
#endif

namespace headscope {

void keep_freed_memory() {
#if defined(__GLIBC__)
    constexpr int kept = 0x7fffffff;  // the largest that mallopt takes
    mallopt(M_MMAP_THRESHOLD, kept);
    mallopt(M_TRIM_THRESHOLD, kept);
    mallopt(M_TOP_PAD, 64 << 20);
    mallopt(M_ARENA_MAX, 1);
#endif
}

}  // namespace headscope

// SPDX-License-Identifier: GPL-3.0-or-later
// ThreadSanitizer alone: QProcess starts children by clone(CLONE_VM | CLONE_VFORK). The sanitizer's own clone() takes
// the child for one with a memory of its own, and what it notes there of the child it notes of the thread that called:
// from then on it sees none of that thread's locks, and everything that the window's thread hands from one worker to
// another looks like a race. Qt finds this function first, and the sanitizer is not asked.
#include <sched.h>

#include <cstdarg>

extern "C" {

int __clone(int (*function)(void*), void* stack, int flags, void* argument, ...);  // glibc's

int clone(int (*function)(void*), void* stack, int flags, void* argument, ...) noexcept {
    std::va_list more;
    va_start(more, argument);
    void* parent_id = va_arg(more, void*);
    void* storage = va_arg(more, void*);
    void* child_id = va_arg(more, void*);
    va_end(more);
    return __clone(function, stack, flags, argument, parent_id, storage, child_id);
}
}

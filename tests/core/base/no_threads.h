// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <iterator>

namespace headscope::test {

/// From now on the system refuses this process every thread, as it does at a limit of processes. False: a kernel
/// without filters, or a sandbox around us.
inline bool refuse_threads() {
    const unsigned refusal = static_cast<unsigned>(SECCOMP_RET_ERRNO) | static_cast<unsigned>(EAGAIN);
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offsetof(seccomp_data, nr))),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, refusal),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// Result of `work` in a child process that gets no threads; true if the system has no way to refuse them. A crash
/// is false.
template <class Work>
bool holds_without_threads(const Work& work) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (!refuse_threads()) ::_exit(0);
        try {
            ::_exit(work() ? 0 : 1);
        } catch (...) {
            ::_exit(2);
        }
    }
    int status = 0;
    return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace headscope::test

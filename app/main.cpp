// SPDX-License-Identifier: GPL-3.0-or-later
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>

#include "app/command_line.h"
#ifdef HEADSCOPE_WITH_RIG
#include "tests/rig/rig.h"
#endif

namespace {

/// An analysis that is open keeps its file: with a desktop's usual limit of 1024 some hundred of them are the end.
void allow_many_files() {
    constexpr rlim_t kMany = 65536;
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= kMany) return;
    files.rlim_cur = std::min(kMany, files.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

int main(int argc, char** argv) {
    // Big tensors come and go with every layer. With glibc's defaults each one is mapped afresh and its pages are
    // faulted in again, which costs a forward pass up to half its time; kept in the heap they are reused.
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    allow_many_files();
    std::signal(SIGCHLD, SIG_DFL);  // ignored, as a parent may leave it, children would have no exit status
#ifdef HEADSCOPE_WITH_RIG
    headscope::app::install_rig();
#endif
    return headscope::app::run_command_line(argc, argv);
}

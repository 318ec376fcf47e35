// SPDX-License-Identifier: GPL-3.0-or-later
#include <malloc.h>

#include "app/command_line.h"

int main(int argc, char** argv) {
    // Big tensors come and go with every layer. With glibc's defaults each one is mapped afresh and its pages are
    // faulted in again, which costs a forward pass up to half its time; kept in the heap they are reused.
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    return headscope::app::run_command_line(argc, argv);
}

// SPDX-License-Identifier: GPL-3.0-or-later
// Whole models of every mixer on the GPU libraries' kernels, in the emulated device's memory: what a card computes.
#include "tests/catch_with_torch.h"

#include "tests/core/device/mixer_stack.h"

using namespace headscope;

TEST_CASE("Every mixer computes on a GPU's kernels, forward and backward, what it computes on the CPU",
          "[device][kernels]") {
    for (const std::string& mixer : mixers::known_names()) test::check_mixer(mixer, test::GpuKernels::emulator);
}

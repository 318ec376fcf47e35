// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/openmp_spin.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace headscope::app {

bool computes(const std::string& command) {
    static const std::array<const char*, 9> commands{"analyze",  "ask",      "bench",     "convert", "cost",
                                                     "evaluate", "generate", "reproduce", "train"};
    return std::find(commands.begin(), commands.end(), command) != commands.end();
}

void limit_openmp_spin(char** argv) {
    constexpr const char* kRounds = "200";
    if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
    if (::setenv("GOMP_SPINCOUNT", kRounds, 1) == 0) ::execv("/proc/self/exe", argv);
}

}  // namespace headscope::app

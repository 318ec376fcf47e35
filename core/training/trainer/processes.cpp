// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/processes.h"

namespace headscope::training {

void Processes::broadcast_text(std::string& text) {
    std::uint64_t size = text.size();
    broadcast(&size, sizeof size);
    text.resize(size);
    if (size > 0) broadcast(text.data(), text.size());
}

std::vector<double> of_all(Processes& processes, double own) {
    std::vector<double> all(static_cast<std::size_t>(processes.size()), 0.0);
    all[static_cast<std::size_t>(processes.rank())] = own;
    processes.sum(all.data(), processes.size());
    return all;
}

}  // namespace headscope::training

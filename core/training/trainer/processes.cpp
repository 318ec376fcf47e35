// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/processes.h"

namespace headscope::training {

void Processes::broadcast_text(std::string& text) {
    std::uint64_t size = text.size();
    broadcast(&size, sizeof size);
    text.resize(size);
    if (size > 0) broadcast(text.data(), text.size());
}

}  // namespace headscope::training

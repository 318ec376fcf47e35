// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/flop_counter.h"

#include "kernels/backend.h"
#include "kernels/operators.h"

namespace headscope::kernels {
namespace counting {

std::atomic<bool> on{false};
std::atomic<std::int64_t> flops{0};

}  // namespace counting

FlopCounter::FlopCounter() {
    if (counting::on.exchange(true)) throw Error("flop counter", "one at a time", "another that counts");
    counting::flops = 0;
}

FlopCounter::~FlopCounter() {
    counting::on = false;
}

std::int64_t FlopCounter::value() const {
    return counting::flops.load();
}

bool FlopCounter::is_complete() {
    return backend_for(Device::cpu) != Backend::gpu;
}

}  // namespace headscope::kernels

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/process/cancellation_scope.h"

#include <utility>

namespace headscope {
namespace {

thread_local const Cancellation* current = nullptr;

}  // namespace

CancellationScope::CancellationScope(const Cancellation& cancellation)
    : outer_(std::exchange(current, &cancellation)) {}

CancellationScope::~CancellationScope() {
    current = outer_;
}

bool cancellation_requested() noexcept {
    return current != nullptr && current->requested();
}

void check_cancellation() {
    if (current != nullptr) current->check();
}

}  // namespace headscope

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/io/uncached_reads.h"

#include <utility>

namespace headscope {
namespace {

thread_local bool uncached = false;

}  // namespace

UncachedReads::UncachedReads(bool wanted) : outer_(std::exchange(uncached, wanted)) {}

UncachedReads::~UncachedReads() {
    uncached = outer_;
}

bool reads_uncached() noexcept {
    return uncached;
}

}  // namespace headscope

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/work_meter.h"

#include <algorithm>
#include <atomic>
#include <string_view>

#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <c10/util/Logging.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include "core/cost/operator_flops.h"
#include "kernels/flop_counter.h"

namespace headscope::cost {
namespace {

/// Receives every allocation and release from now on; earlier ones are unknown to it.
class Memory final : public c10::MemoryReportingInfoBase {
public:
    void reportMemoryUsage(void*, std::int64_t size, std::size_t, std::size_t, c10::Device) override {
        const std::int64_t now = bytes.fetch_add(size) + size;
        for (std::int64_t seen = peak.load(); now > seen && !peak.compare_exchange_weak(seen, now);) {
        }
    }
    bool memoryProfilingEnabled() const override { return true; }

    std::atomic<std::int64_t> bytes{0}, peak{0};
};

/// Operators call each other; the outermost that is counted counts.
thread_local int depth = 0;
std::atomic<std::int64_t> operator_flops{0};

struct Counted final : at::ObserverContext {};

std::unique_ptr<at::ObserverContext> begin_operator(const at::RecordFunction& function) {
    const std::int64_t flops = flops_of_operator(function.name(), function.inputs());
    if (flops < 0) return nullptr;
    if (depth++ == 0) operator_flops += flops;
    return std::make_unique<Counted>();
}

void end_operator(const at::RecordFunction&, at::ObserverContext* context) {
    if (context != nullptr) --depth;
}

}  // namespace

struct WorkMeter::Impl {
    Impl() : memory(std::make_shared<Memory>()), guard(c10::DebugInfoKind::PROFILER_STATE, memory) {
        operator_flops = 0;
        depth = 0;
        FLAGS_caffe2_log_level = 2;  // LibTorch would log each release of memory that is older than the meter
        handle = at::addThreadLocalCallback(at::RecordFunctionCallback(begin_operator, end_operator)
                                                .needsInputs(true)
                                                .scopes({at::RecordScope::FUNCTION}));
    }
    ~Impl() {
        at::removeCallback(handle);
        FLAGS_caffe2_log_level = log_level;
    }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    kernels::FlopCounter kernels;  // first: it refuses a second meter
    std::shared_ptr<Memory> memory;
    c10::DebugInfoGuard guard;
    at::CallbackHandle handle = 0;
    int log_level = FLAGS_caffe2_log_level;
};

WorkMeter::WorkMeter() : impl_(std::make_unique<Impl>()) {}
WorkMeter::~WorkMeter() = default;

std::int64_t WorkMeter::flops() const {
    return operator_flops + impl_->kernels.value();
}

std::int64_t WorkMeter::bytes() const {
    return impl_->memory->bytes;
}

std::int64_t WorkMeter::peak_bytes() const {
    return impl_->memory->peak;
}

void WorkMeter::restart_peak() {
    impl_->memory->peak = impl_->memory->bytes.load();
}

}  // namespace headscope::cost

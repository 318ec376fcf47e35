// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Entries of the plugin's table, and launches with the outcome of a call.

#include <cstdio>

#include "kernels/gpu/device/platform.h"
#include "kernels/gpu/plugin.h"

namespace headscope::gpu {

inline void set_outcome(HsOutcome& outcome, int status, const char* text) {
    outcome.status = status;
    std::snprintf(outcome.text, sizeof outcome.text, "%s", text);
}

/// Launches kernels of one call on its stream until one fails or the call is cancelled.
class Launcher {
public:
    Launcher(const HsCall& call, HsOutcome& outcome) : call_(call), outcome_(outcome) {
        set_outcome(outcome, HS_DONE, "");
    }

    template <class K>
    void run(std::int64_t blocks, const typename K::Args& args) {
        if (outcome_.status != HS_DONE) return;
        if (call_.cancelled != nullptr && call_.cancelled(call_.self) != 0)
            return set_outcome(outcome_, HS_CANCELLED, "cancelled");
        const char* error = launch<K>(blocks, K::kShared, args, call_.stream);
        if (error != nullptr) set_outcome(outcome_, HS_DEVICE_FAILED, error);
    }

    /// Ends the call: the library has no kernel for these sizes.
    void refuse(const char* text) {
        if (outcome_.status == HS_DONE) set_outcome(outcome_, HS_UNSUPPORTED, text);
    }

private:
    const HsCall& call_;
    HsOutcome& outcome_;
};

void attention_entry(const HsAttention* attention, const HsCall* call, HsOutcome* outcome);
int attention_mma(int normaliser);
/// Attention of these operands multiplies on tensor cores.
bool takes_mma(const HsAttention& a);
void attention_backward_entry(const HsBackward* backward, const HsCall* call, HsOutcome* outcome);
void recurrent_forward_entry(const HsRecurrentForward* forward, const HsCall* call, HsOutcome* outcome);
void recurrent_backward_entry(const HsRecurrentBackward* backward, const HsCall* call, HsOutcome* outcome);
void implicit_entry(const HsImplicit* implicit, const HsCall* call, HsOutcome* outcome);
void running_forward_entry(const HsRunningForward* forward, const HsCall* call, HsOutcome* outcome);
void running_backward_entry(const HsRunningBackward* backward, const HsCall* call, HsOutcome* outcome);
void taylor_entry(const HsTaylor* taylor, const HsCall* call, HsOutcome* outcome);
void rms_norm_entry(const HsRmsNorm* task, const HsCall* call, HsOutcome* outcome);
void rms_norm_backward_entry(const HsRmsNorm* task, const HsCall* call, HsOutcome* outcome);
void gated_silu_entry(const HsGatedSilu* task, const HsCall* call, HsOutcome* outcome);
void rotate_entry(const HsRotation* task, const HsCall* call, HsOutcome* outcome);
void cross_entropy_entry(const HsCrossEntropy* task, const HsCall* call, HsOutcome* outcome);
void convolution_entry(const HsConvolution* task, const HsCall* call, HsOutcome* outcome);
void convolution_backward_entry(const HsConvolution* task, const HsCall* call, HsOutcome* outcome);
void adamw_entry(const HsAdamW* task, const HsCall* call, HsOutcome* outcome);
void squared_norm_entry(const HsSquaredNorm* task, const HsCall* call, HsOutcome* outcome);

}  // namespace headscope::gpu

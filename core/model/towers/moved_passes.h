// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/model/edits/editor.h"
#include "core/model/model.h"
#include "core/model/probe.h"

namespace headscope::model {

/// Passes over weights on another device: batches are moved there once, and probes and editors read values on the
/// processor. On the processor the passes as they are. Threads: the compute thread.
class MovedPasses {
public:
    /// `given` must outlive this.
    MovedPasses(const std::vector<Model::Pass>& given, const at::Device& device);
    const std::vector<Model::Pass>& passes() const { return *passes_; }

private:
    std::deque<Batch> batches_;
    std::vector<std::unique_ptr<Probe>> probes_;
    std::vector<std::unique_ptr<Editor>> editors_;
    std::vector<Model::Pass> moved_;
    const std::vector<Model::Pass>* passes_;
};

}  // namespace headscope::model

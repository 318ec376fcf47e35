// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Golden models with one text, run with interventions.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

#include "core/model/edits/intervention.h"
#include "core/model/model.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace headscope::test::edits {

struct Case {
    std::shared_ptr<model::Model> model;
    model::Batch batch;
};

/// The first text of a golden model, without padding.
inline Case one_text(const std::string& name) {
    Case one{test::golden_checkpoint(name).build(), test::golden_batch(name)};
    const std::int64_t length = one.batch.lengths.empty() ? one.batch.ids.size(1) : one.batch.lengths[0];
    one.batch.ids = one.batch.ids.narrow(0, 0, 1).narrow(1, 0, length);
    one.batch.lengths.clear();
    if (one.batch.token_types.defined())
        one.batch.token_types = one.batch.token_types.narrow(0, 0, 1).narrow(1, 0, length);
    if (one.batch.target.defined()) {
        const std::int64_t own =
            one.batch.target_lengths.empty() ? one.batch.target.size(1) : one.batch.target_lengths[0];
        one.batch.target = one.batch.target.narrow(0, 0, 1).narrow(1, 0, own);
        one.batch.target_lengths.clear();
    }
    return one;
}

inline at::Tensor run(const Case& one, std::vector<model::Intervention> list, model::Probe* probe = nullptr) {
    model::Interventions edits(std::move(list), one.model->config(), one.model->sites());
    model::ForwardOptions options;
    options.beyond_positions = true;
    options.probe = probe;
    options.editor = &edits;
    return one.model->forward(one.batch, options);
}

inline model::Intervention edit(model::Point point, model::Action action, std::vector<std::int64_t> layers = {}) {
    model::Intervention one;
    one.point = point;
    one.action = action;
    one.layers = std::move(layers);
    return one;
}

inline bool close(const at::Tensor& a, const at::Tensor& b) {
    return largest_difference(a, b) < 4 * test::kFloatError * (largest_value(b) + 1e-30);
}

/// Numbers from -1 to 1 that differ.
inline at::Tensor numbers(at::IntArrayRef shape) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    return (at::arange(count, at::kFloat) * 0.7).sin().view(shape);
}

inline const std::vector<std::string> kFamilies{"llama",
                                                "gpt2",
                                                "gemma2",
                                                "neox",
                                                "deepseek-v3",
                                                "gpt-oss",
                                                "bert",
                                                "t5",
                                                "hybrid-qwen3-next",
                                                "hybrid-falcon-h1",
                                                "hybrid-diffllama",
                                                "native-natsl",
                                                "native-approximate",
                                                "bloom",
                                                "olmo2",
                                                "hybrid-jamba"};

}  // namespace headscope::test::edits

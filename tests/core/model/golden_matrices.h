// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/catch_with_torch.h"

#include <map>

#include <ATen/ops/eye.h>

#include "core/mixers/shared/attend.h"
#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace headscope::test {

/// Every layer's weights, or the implicit ones of its state, are the golden ones, where there are any.
inline void compare_matrices(const GoldenModel& golden, const model::Segments& segments = {}) {
    const auto model = golden.checkpoint.build();
    RecordingProbe probe(true, {"nothing"});
    model::ForwardOptions options;
    options.probe = &probe;
    options.segments = segments;
    model->forward(golden.batch, options);
    if (golden.attention.empty()) return;
    std::map<std::int64_t, at::Tensor> found;
    for (const RecordingProbe::Measured& site : probe.sites) {
        // With the unit matrix as values, the output is the weights.
        const std::int64_t keys = site.key.size(2);
        const at::Tensor unit = at::eye(keys, at::kFloat).expand({site.key.size(0), site.key.size(1), keys, keys});
        found[site.site] = mixers::dense_attention(site.query, site.key, unit, site.rule);
    }
    for (const RecordingProbe::ImplicitMatrix& site : probe.implicits) found[site.site] = site.weights;
    REQUIRE(found.size() == golden.attention.size());
    auto expected = golden.attention.begin();
    for (const auto& [site, weights] : found) {
        INFO("site " << site);
        CHECK(largest_difference(weights, *expected) < kFloatError * largest_value(*expected));
        ++expected;
    }
}

}  // namespace headscope::test

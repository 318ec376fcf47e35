// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Values of a pass, copied whole: references of tools that read them piece by piece.

#include <set>
#include <vector>

#include "tests/core/ask/asked_model.h"

namespace headscope::test {

/// All values of these points in a run of `ids`, as float64.
inline std::map<model::PointKey, at::Tensor> recorded_values(const AskedModel& asked,
                                                             const std::vector<std::int64_t>& ids,
                                                             const std::vector<model::Point>& points) {
    std::set<model::PointKey> wanted;
    for (const model::Point point : points)
        for (const model::PointKey& key : model::places_of(point, asked.model->config(), asked.model->sites()))
            wanted.insert(key);
    model::PointRecorder recorder(wanted);
    model::Batch batch;
    batch.ids = at::tensor(ids, at::kLong).unsqueeze(0);
    model::ForwardOptions options;
    options.editor = &recorder;
    asked.model->forward(batch, options);
    std::map<model::PointKey, at::Tensor> found;
    for (const auto& [key, value] : recorder.values) found[key] = value.to(at::kDouble).contiguous();
    return found;
}

}  // namespace headscope::test

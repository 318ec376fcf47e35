// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Values of a pass, copied whole: references of tools that read them piece by piece.

#include <set>
#include <vector>

#include "tests/core/ask/asked_model.h"

namespace headscope::test {

/// All values of these points in a run of a batch, as float64.
inline std::map<model::PointKey, at::Tensor> values_of_batch(const AskedModel& asked, const model::Batch& batch,
                                                             const std::vector<model::Point>& points,
                                                             model::Probe* probe = nullptr) {
    std::set<model::PointKey> wanted;
    for (const model::Point point : points)
        for (const model::PointKey& key : model::places_of(point, asked.model->config(), asked.model->sites()))
            wanted.insert(key);
    model::PointRecorder recorder(wanted);
    model::ForwardOptions options;
    options.editor = &recorder;
    options.probe = probe;
    asked.model->forward(batch, options);
    std::map<model::PointKey, at::Tensor> found;
    for (const auto& [key, value] : recorder.values) found[key] = value.to(at::kDouble).contiguous();
    return found;
}

/// The same of a run of `ids`.
inline std::map<model::PointKey, at::Tensor> recorded_values(const AskedModel& asked,
                                                             const std::vector<std::int64_t>& ids,
                                                             const std::vector<model::Point>& points) {
    model::Batch batch;
    batch.ids = at::tensor(ids, at::kLong).unsqueeze(0);
    return values_of_batch(asked, batch, points);
}

}  // namespace headscope::test

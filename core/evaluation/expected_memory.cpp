// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/expected_memory.h"

#include <algorithm>

namespace headscope::evaluation {

model::Residence expect_memory(const Request& request, const model::Inspection& inspection,
                               model::WeightChoice choice) {
    std::int64_t rows = request.score.batch_tokens;
    for (const std::int64_t length : request.lengths) rows = std::max(rows, length);
    const bool trains = std::find(request.tasks.begin(), request.tasks.end(), "speed") != request.tasks.end();
    const auto tokens = static_cast<double>(rows);
    choice.otherwise = "lower --batch-tokens or --length";
    return model::choose_residence(
        [&](model::Residence residence) {
            return model::reading_bytes(inspection, tokens, tokens, choice.precision, residence) +
                   (trains ? 2 * model::weight_bytes(inspection, checkpoint::LoadAs::float32) : 0);
        },
        choice);
}

}  // namespace headscope::evaluation

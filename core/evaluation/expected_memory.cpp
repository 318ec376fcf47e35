// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/expected_memory.h"

#include <algorithm>

#include "core/model/load/memory.h"

namespace headscope::evaluation {

void expect_memory(const Request& request, const model::Inspection& inspection, checkpoint::LoadAs precision) {
    std::int64_t rows = request.score.batch_tokens;
    for (const std::int64_t length : request.lengths) rows = std::max(rows, length);
    const bool trains = std::find(request.tasks.begin(), request.tasks.end(), "speed") != request.tasks.end();
    const auto tokens = static_cast<double>(rows);
    model::expect_memory_for(
        [&](checkpoint::LoadAs as) {
            return model::reading_bytes(inspection, tokens, tokens, as) +
                   (trains ? 2 * model::weight_bytes(inspection, checkpoint::LoadAs::float32) : 0);
        },
        precision, {.option = "--dtype bfloat16", .otherwise = "lower --batch-tokens or --length"});
}

}  // namespace headscope::evaluation

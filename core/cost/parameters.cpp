// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/parameters.h"

namespace headscope::cost {

ParameterCount count_parameters(const StackSizes& sizes) {
    const std::int64_t head_size = sizes.head_size > 0 ? sizes.head_size : sizes.hidden / sizes.heads;
    const std::int64_t groups = sizes.key_value_heads > 0 ? sizes.key_value_heads : sizes.heads;
    const std::int64_t query_rows = sizes.heads * head_size, key_rows = groups * head_size, d = sizes.hidden;
    ParameterCount count;
    count.embedding = sizes.vocabulary * d;
    count.head = sizes.tied ? 0 : count.embedding;
    count.outputs = sizes.layers * d * query_rows;
    count.feed_forward = sizes.layers * 3 * d * sizes.feed_forward;
    count.norms = (2 * sizes.layers + 1) * d;
    for (std::int64_t layer = 0; layer < sizes.layers; ++layer) {
        if (!sizes.mixers.empty() && sizes.mixers.at(static_cast<std::size_t>(layer)) == "mlp") {
            count.mixers += 2 * query_rows * d + query_rows * query_rows;
            continue;
        }
        if (!sizes.mixers.empty() && sizes.mixers.at(static_cast<std::size_t>(layer)) == "sink_logits")
            count.mixers += sizes.heads;
        count.mixers += (query_rows + 2 * key_rows) * d;
        if (sizes.query_key_value_bias) count.mixers += query_rows + 2 * key_rows;
        if (sizes.query_key_norm) count.mixers += 2 * head_size;
    }
    return count;
}

}  // namespace headscope::cost

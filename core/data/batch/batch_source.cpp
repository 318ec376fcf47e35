// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/batch/batch_source.h"

#include <algorithm>
#include <limits>

#include "core/base/error.h"

namespace headscope::data {

void BatchSource::check_range(std::int64_t first, std::int64_t count) {
    if (first < 0 || count < 0 || first > std::numeric_limits<std::int64_t>::max() - count) {
        throw Error(ErrorCode::internal, "data", "expected numbers of sequences from 0 on",
                    "found " + std::to_string(count) + " from " + std::to_string(first) + " on");
    }
}

void BatchSource::write(std::int64_t index, std::int64_t*, std::int64_t*) const {
    throw Error(ErrorCode::internal, "data", "expected a source that writes or reads its sequences",
                "found neither at " + std::to_string(index));
}

DataBatch BatchSource::read(std::int64_t first, std::int64_t count) const {
    check_range(first, count);
    DataBatch batch;
    batch.sequences = count;
    batch.length = length_;
    const auto size = static_cast<std::size_t>(count * length_);
    batch.ids.resize(size);
    batch.targets.assign(size, no_target);
    for (std::int64_t i = 0; i < count; ++i) {
        write(first + i, batch.ids.data() + i * length_, batch.targets.data() + i * length_);
    }
    batch.counted = std::count_if(batch.targets.begin(), batch.targets.end(), [](auto t) { return t != no_target; });
    return batch;
}

}  // namespace headscope::data

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace headscope::model {

/// What a model reads. Equal lengths within a batch is the fast way; shorter sequences are padded at the end and say so
/// in `lengths`. Later embeddings (hash features of words) add members here.
struct Batch {
    at::Tensor ids;                     ///< [B, L] int64
    std::vector<std::int64_t> lengths;  ///< [B] or empty: all L
    at::Tensor token_types;             ///< [B, L] int64 or undefined: zeros (BERT)
};

}  // namespace headscope::model

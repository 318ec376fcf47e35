// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/check_batch.h"

#include <string>

#include "core/base/error.h"

namespace headscope::model {
namespace {

[[noreturn]] void refuse(ErrorCode code, const std::string& expected, const std::string& found) {
    throw Error(code, "batch", expected, found);
}

/// `values` [B, L] int64, each in [0, limit).
void check_range(const at::Tensor& values, std::int64_t limit, const std::string& what, const std::string& bound) {
    const at::Tensor plain = values.contiguous();
    const std::int64_t* data = plain.const_data_ptr<std::int64_t>();
    const std::int64_t length = plain.size(1);
    for (std::int64_t i = 0; i < plain.numel(); ++i) {
        if (data[i] >= 0 && data[i] < limit) continue;
        throw Error(ErrorCode::limit,
                    "sequence " + std::to_string(i / length) + ", token " + std::to_string(i % length),
                    "expected " + what + " from 0 to " + std::to_string(limit - 1) + " (" + bound + ")",
                    "found " + std::to_string(data[i]));
    }
}

void check_shape(const at::Tensor& tensor, const std::string& what) {
    if (!tensor.defined() || tensor.dim() != 2 || tensor.scalar_type() != at::kLong) {
        refuse(ErrorCode::usage, "expected " + what + " [batch, length] of int64", "found another tensor");
    }
}

void check_lengths(const Batch& batch) {
    if (batch.lengths.empty()) return;
    if (static_cast<std::int64_t>(batch.lengths.size()) != batch.ids.size(0)) {
        refuse(ErrorCode::usage, "expected a length for each of " + std::to_string(batch.ids.size(0)) + " sequences",
               "found " + std::to_string(batch.lengths.size()));
    }
    for (const std::int64_t length : batch.lengths) {
        if (length < 1 || length > batch.ids.size(1)) {
            refuse(ErrorCode::usage, "expected lengths from 1 to " + std::to_string(batch.ids.size(1)),
                   "found " + std::to_string(length));
        }
    }
}

void check_positions(std::int64_t total, const ModelConfig& config, bool beyond_positions) {
    if (config.max_positions == 0 || total <= config.max_positions) return;
    const std::string limit =
        "expected at most " + std::to_string(config.max_positions) + " tokens, the model's positions";
    const std::string found = "found " + std::to_string(total);
    if (config.positions_are_a_table) {
        throw Error(ErrorCode::limit, "length", limit + " (a table in the file: there are no more)", found);
    }
    if (!beyond_positions) {
        throw Error(ErrorCode::limit, "length", limit, found + " (--beyond-positions runs past the limit)");
    }
}

}  // namespace

void check_batch(const Batch& batch, const ModelConfig& config, std::int64_t held, bool beyond_positions) {
    check_shape(batch.ids, "ids");
    if (batch.ids.numel() == 0) refuse(ErrorCode::usage, "expected at least one token", "found an empty text");
    check_lengths(batch);
    if (batch.token_types.defined()) {
        check_shape(batch.token_types, "token types");
        if (config.token_types == 0) refuse(ErrorCode::usage, "expected no token types for this model", "found some");
        if (batch.token_types.sizes() != batch.ids.sizes()) {
            refuse(ErrorCode::usage, "expected token types of the shape of the ids", "found another");
        }
        check_range(batch.token_types, config.token_types, "a token type", "the model's token types");
    }
    check_positions(held + batch.ids.size(1), config, beyond_positions);
    check_range(batch.ids, config.vocabulary, "an id", "the model's vocabulary");
}

}  // namespace headscope::model

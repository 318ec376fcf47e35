// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/stored_tensor.h"
#include "core/model/load/packed_matrix.h"

namespace headscope::model {

/// A matrix with a row per word that is not in memory in the type the model computes in: rows are converted, or read,
/// when they are asked for. Threads: the compute thread.
class RowTable {
public:
    /// `kept`: held in memory as stored. Otherwise single rows are read from the file, and it is held from its first
    /// whole use to release().
    RowTable(std::shared_ptr<const checkpoint::Checkpoint> file, std::string tensor, c10::ScalarType type, bool kept,
             const Cancellation& cancellation);

    std::int64_t size() const { return size_; }
    std::int64_t columns() const { return columns_; }
    c10::ScalarType type() const { return type_; }
    /// Those that `ids` (int64, of any shape) name, on their device.
    at::Tensor rows(const at::Tensor& ids) const;
    at::Tensor rows(std::int64_t first, std::int64_t count) const;
    /// The next products are of few tokens (kFewTokens), which may be multiplied as stored.
    void expect_few(bool few) { few_ = few; }
    /// The table to multiply as stored; null where it cannot be, or many tokens are expected.
    const PackedMatrix* product() const;
    /// Drops what a whole use left in memory, unless the table is kept.
    void release();

private:
    std::shared_ptr<const checkpoint::Checkpoint> file_;
    std::string tensor_;
    c10::ScalarType type_;
    bool kept_;
    std::int64_t size_ = 0, columns_ = 0;
    std::optional<checkpoint::FileRows> single_;  ///< unless the table is kept
    mutable std::shared_ptr<const checkpoint::StoredTensor> held_;
    mutable std::unique_ptr<const PackedMatrix> product_;  ///< of held_, once it was asked for
    bool takes_product_ = false, few_ = false;
};

}  // namespace headscope::model

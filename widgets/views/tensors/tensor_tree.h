// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "widgets/views/tensors/tensor_source.h"

namespace headscope::widgets {

/// Which tensors are shown.
struct TensorFilter {
    std::string text;  ///< words, all of which are in the name; case does not matter
    std::array<bool, kTensorStatuses> statuses{true, true, true, true, true};
    bool operator==(const TensorFilter&) const = default;
};

/// A table's tensors that pass a filter, as a tree by the dots in their names. Half a million are possible: names that
/// begin alike lie together in the table's order, so that a branch is a range, made when it is opened. Immutable.
class TensorTree {
public:
    /// Tests every name: for a worker. Throws Stopped.
    TensorTree(std::shared_ptr<const TensorTable> table, const TensorFilter& filter, const Cancellation& cancellation);

    /// Rows [begin, end) of this tree that begin alike; a leaf is one row.
    struct Branch {
        std::size_t begin = 0, end = 0;
        std::size_t label = 0, name = 0;  ///< where its label begins and ends in any row's name
        bool leaf = false, root = false;
    };
    Branch root() const { return {0, rows_.size(), 0, 0, false, true}; }
    /// Children of a branch: branches and leaves, numbers by value. A branch with a single child is merged with it.
    std::vector<Branch> children(const Branch& branch) const;

    const TensorTable& table() const { return *table_; }
    const TensorRow& row(std::size_t place) const { return table_->rows[rows_[place]]; }
    std::string_view label(const Branch& branch) const;
    std::string_view path(const Branch& branch) const;  ///< the whole name up to here
    std::size_t size() const { return rows_.size(); }
    /// Totals over all rows of a branch.
    std::int64_t bytes(const Branch& branch) const { return bytes_[branch.end] - bytes_[branch.begin]; }
    std::int64_t elements(const Branch& branch) const { return elements_[branch.end] - elements_[branch.begin]; }
    /// Rows of the whole table by status.
    const std::array<std::size_t, kTensorStatuses>& totals() const { return totals_; }
    /// Its rows as CSV: name, type, shape, elements, bytes, file, what the model makes of it. Any thread.
    std::string csv() const;
    /// Index of a tensor; size() if it does not exist.
    std::size_t find(std::string_view name) const;

private:
    std::shared_ptr<const TensorTable> table_;
    std::vector<std::uint32_t> rows_;
    std::vector<std::int64_t> bytes_, elements_;  ///< sums of all rows before
    std::array<std::size_t, kTensorStatuses> totals_{};
};

}  // namespace headscope::widgets

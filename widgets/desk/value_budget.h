// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

namespace headscope::widgets {

class Study;

/// What the values that studies keep may take together, however many are open: those asked for longest ago, of any
/// study, are the first to go. Window's thread; outlives its studies.
class ValueBudget {
public:
    explicit ValueBudget(std::int64_t most_bytes = 160LL << 20) : most_bytes_(most_bytes) {}
    ValueBudget(const ValueBudget&) = delete;
    ValueBudget& operator=(const ValueBudget&) = delete;

    void join(Study* study) { studies_.push_back(study); }
    void leave(Study* study);

    std::uint64_t tick() { return ++clock_; }  ///< a value was asked for
    void add(std::int64_t bytes) { bytes_ += bytes; }
    std::int64_t bytes() const { return bytes_; }
    void trim();

private:
    std::int64_t most_bytes_, bytes_ = 0;
    std::uint64_t clock_ = 0;
    std::vector<Study*> studies_;
};

}  // namespace headscope::widgets

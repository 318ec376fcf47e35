// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <string>

namespace headscope::widgets {

class Study;

/// Limit on the values that all open studies keep together. Drops the values whose last request is oldest, of any
/// study. Window's thread; outlives its studies.
class ValueBudget {
public:
    struct Value {
        Study* study = nullptr;
        std::string key;
        std::int64_t bytes = 0;
        int round = 0;  ///< in which it was asked for, or came
    };
    /// In the order in which they were asked for last.
    using Values = std::list<Value>;
    using Place = Values::iterator;

    /// The value that came last and those that were asked for in the last `rounds` stay, however large: views ask for
    /// all that they show whenever something came, and would have it read for ever if one value pushed out another.
    explicit ValueBudget(std::int64_t most_bytes = 160LL << 20, int rounds = 3)
        : most_bytes_(most_bytes), rounds_(rounds) {}
    ValueBudget(const ValueBudget&) = delete;
    ValueBudget& operator=(const ValueBudget&) = delete;

    /// A value that was asked for; it has no bytes before it came.
    Place add(Study* study, const std::string& key);
    void touch(Place value);
    /// Something came: views will request again. Several calls before they have count once.
    void next_round();
    void remove(Place value);
    /// It came.
    void set_bytes(Place value, std::int64_t bytes);
    std::int64_t bytes() const { return bytes_; }
    /// How many rounds there were. Any thread may read it.
    std::shared_ptr<const std::atomic<int>> rounds() const { return round_; }
    /// Lets studies drop values until the others fit.
    void trim();

private:
    void put_last(Place value);

    std::int64_t most_bytes_, bytes_ = 0;
    int rounds_;
    std::shared_ptr<std::atomic<int>> round_ = std::make_shared<std::atomic<int>>(0);
    bool asked_ = false;  ///< in this round
    Values values_;
};

}  // namespace headscope::widgets

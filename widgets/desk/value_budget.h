// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <string>

namespace headscope::widgets {

class Study;

/// What the values that studies keep may take together, however many are open: those asked for longest ago, of any
/// study, are the first to go. Window's thread; outlives its studies.
class ValueBudget {
public:
    using Clock = std::chrono::steady_clock;
    struct Value {
        Study* study = nullptr;
        std::string key;
        std::int64_t bytes = 0;
        Clock::time_point asked = Clock::now();  ///< or came
    };
    /// In the order in which they were asked for last.
    using Values = std::list<Value>;
    using Place = Values::iterator;

    /// The value that came last and those that were asked for within the time of `wanted` stay, however large: a view
    /// asks for all that it shows whenever one came, and would have them read for ever if one pushed out another.
    explicit ValueBudget(std::int64_t most_bytes = 160LL << 20,
                         std::chrono::milliseconds wanted = std::chrono::seconds(2))
        : most_bytes_(most_bytes), wanted_(wanted) {}
    ValueBudget(const ValueBudget&) = delete;
    ValueBudget& operator=(const ValueBudget&) = delete;

    /// A value that was asked for; it has no bytes before it came.
    Place add(Study* study, const std::string& key);
    void touch(Place value);
    void remove(Place value);
    /// It came.
    void set_bytes(Place value, std::int64_t bytes);
    std::int64_t bytes() const { return bytes_; }
    /// Lets studies drop values until the others fit.
    void trim();

private:
    std::int64_t most_bytes_, bytes_ = 0;
    std::chrono::milliseconds wanted_;
    Values values_;
};

}  // namespace headscope::widgets

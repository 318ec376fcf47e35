// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/regex/search_watch.h"

#include <ctime>

#include "core/base/error.h"
#include "core/base/process/cancellation_scope.h"

namespace headscope::tokenizer {

namespace {

// Ordinary patterns take 0.1 microseconds a byte on a machine of 2024.
constexpr double seconds_at_least = 0.5;
constexpr double seconds_a_byte = 1e-6;

double thread_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

SearchWatch::SearchWatch(std::size_t bytes) : bytes_(bytes), used_before_(thread_seconds()) {}

void SearchWatch::look_closely(const std::string& where) {
    // The clock of processor time is a system call: not more often than there is something to see.
    const Clock::time_point now = Clock::now();
    if (now - last_ < std::chrono::milliseconds(1)) return;
    last_ = now;
    check_cancellation();
    const double used = thread_seconds();
    if (used - used_before_ <= seconds_at_least + seconds_a_byte * static_cast<double>(bytes_)) return;
    throw Error(ErrorCode::limit, where, "expected a pattern that is found in time in proportion to the text",
                "found that a text of " + std::to_string(bytes_) + " bytes took longer");
}

}  // namespace headscope::tokenizer

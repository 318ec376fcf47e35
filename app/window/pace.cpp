// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/pace.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>

namespace headscope::app {
namespace {

constexpr std::uint32_t kPlaces = 1U << 22;  // of four bytes: beyond what a core has for itself
constexpr int kSums = 400'000;
constexpr int kReads = 12'000;
constexpr int kFirst = 10;  // measurements before there is a best

/// Time of the calling thread, without the time that it waited for a processor.
double processor_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

Pace::Pace() : places_(kPlaces) {
    // One round through all places, in an order that no prefetcher guesses (Sattolo's shuffle).
    std::iota(places_.begin(), places_.end(), 0U);
    std::uint64_t random = 88172645463325252ULL;
    for (std::uint32_t at = kPlaces - 1; at > 0; --at) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        std::swap(places_[at], places_[random % at]);
    }
    for (int time = 0; time < kFirst; ++time) measure();
}

double Pace::arithmetic() {
    const double begin = processor_seconds();
    for (int at = 0; at < kSums; ++at) kept_ = kept_ * 1664525U + 1013904223U;
    return processor_seconds() - begin;
}

double Pace::reads() {
    const double begin = processor_seconds();
    std::uint32_t place = kept_ % kPlaces;
    for (int at = 0; at < kReads; ++at) place = places_[place];
    kept_ ^= place;
    return processor_seconds() - begin;
}

Pace::Slower Pace::measure() {
    const double sums = arithmetic(), read = reads();
    best_arithmetic_ = best_arithmetic_ > 0 ? std::min(best_arithmetic_, sums) : sums;
    best_reads_ = best_reads_ > 0 ? std::min(best_reads_, read) : read;
    return {sums / best_arithmetic_, read / best_reads_};
}

double stolen_time() {
    std::ifstream file("/proc/stat");
    std::string line;
    double most = 0;
    while (std::getline(file, line) && line.rfind("cpu", 0) == 0) {
        std::istringstream words(line);
        std::string name;
        double user, nice, system, idle, wait, interrupts, soft, stolen;
        if (name = {}; words >> name >> user >> nice >> system >> idle >> wait >> interrupts >> soft >> stolen)
            if (name != "cpu") most = std::max(most, stolen);
    }
    return most / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace headscope::app

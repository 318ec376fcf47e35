// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/machine/memory_room.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "core/base/machine/control_groups.h"

namespace headscope {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/// Number on the line "name value"; 0 without one.
double value_of(std::istream& lines, const std::string& name) {
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string first;
        double value = 0;
        if (words >> first >> value && first == name) return value;
    }
    return 0;
}

double left(const std::string& folder, const std::string& limit_name, const std::string& used_name,
            const std::string& reclaimable) {
    std::ifstream limit_file(folder + "/" + limit_name), used_file(folder + "/" + used_name),
        parts(folder + "/memory.stat");
    double limit = 0, used = 0;
    if (!(limit_file >> limit) || !(used_file >> used)) return kNoLimit;  // "max", or no such group
    return std::max(1.0, limit - std::max(0.0, used - value_of(parts, reclaimable)));
}

double left_of_unified(const std::string& folder) {
    return left(folder, "memory.max", "memory.current", "inactive_file");
}

std::string text_of(const char* path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

double soft_limit(decltype(RLIMIT_AS) resource) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
    return static_cast<double>(limit.rlim_cur);
}

/// Bytes of the heap that were freed and not given back (keep_freed_memory): the next allocations take them.
double free_in_heap() {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    return static_cast<double>(::mallinfo2().fordblks);
#else
    return 0;
#endif
}

/// A limit of addresses holds what a process maps, gaps in the heap and stacks of threads included. Seen: a plan of
/// 1.24 GB that failed with 1.35 GB left.
double without_gaps(double limits) {
    constexpr double kOthers = 64 << 20;
    return std::max(1.0, limits * 7 / 8 - kOthers);
}

/// Without a limit it says a number that no machine has.
double left_of_own(const std::string& folder) {
    return left(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file");
}

}  // namespace

double memory_room(const std::string& meminfo, const std::string& groups, const std::string& mount) {
    std::istringstream lines(meminfo);
    const double available = 1024 * value_of(lines, "MemAvailable:");
    const double room = std::min(available > 0 ? available : kNoLimit,
                                 least_of_groups(groups, mount, "memory", left_of_unified, left_of_own));
    return std::isfinite(room) ? room : 0;
}

double memory_room() {
    return memory_room(text_of("/proc/meminfo"), own_groups(), "/sys/fs/cgroup");
}

double limits_left(const std::string& status, double address_space, double data) {
    const auto left = [&status](double limit, const std::string& name) {
        std::istringstream lines(status);
        return std::isinf(limit) ? kNoLimit : std::max(1.0, limit - 1024 * value_of(lines, name));
    };
    return std::min(left(address_space, "VmSize:"), left(data, "VmData:"));
}

double own_memory_room() {
    const double room = memory_room(),
                 limits = without_gaps(
                     limits_left(text_of("/proc/self/status"), soft_limit(RLIMIT_AS), soft_limit(RLIMIT_DATA)));
    const double least = room > 0 ? std::min(room, limits) : limits;
    return std::isfinite(least) ? least + free_in_heap() : 0;
}

}  // namespace headscope

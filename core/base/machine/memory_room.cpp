// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/machine/memory_room.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>

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
    std::ifstream file("/proc/meminfo");
    return memory_room({std::istreambuf_iterator<char>(file), {}}, own_groups(), "/sys/fs/cgroup");
}

}  // namespace headscope

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/machine/processors.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <thread>

#include "core/base/machine/control_groups.h"

namespace headscope {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

double share(double quota, double period) {
    return quota > 0 && period > 0 ? quota / period : kNoLimit;
}

/// Version 2: "200000 100000" or "max 100000".
double limit_of_max(const std::string& folder) {
    std::ifstream file(folder + "/cpu.max");
    double quota = 0, period = 0;
    return file >> quota >> period ? share(quota, period) : kNoLimit;
}

/// Version 1: microseconds in files of their own; a quota of -1 is none.
double limit_of_quota(const std::string& folder) {
    std::ifstream quota_file(folder + "/cpu.cfs_quota_us"), period_file(folder + "/cpu.cfs_period_us");
    double quota = 0, period = 0;
    return quota_file >> quota && period_file >> period ? share(quota, period) : kNoLimit;
}

}  // namespace

double processor_limit(const std::string& groups, const std::string& mount) {
    return least_of_groups(groups, mount, "cpu", limit_of_max, limit_of_quota);
}

int usable_processors() {
    static const int usable = [] {
        const double limit = std::max(1.0, std::ceil(processor_limit(own_groups(), "/sys/fs/cgroup")));
        const int processors = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
        return limit < processors ? static_cast<int>(limit) : processors;
    }();
    return usable;
}

}  // namespace headscope

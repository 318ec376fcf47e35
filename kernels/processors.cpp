// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/processors.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <thread>

namespace headscope::kernels {
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

/// Of the group `path` and all above it. In a container the path is often the host's, and only its end is to be seen,
/// as the root.
template <class Limit>
double least_on_the_way(const std::string& mount, std::string path, const Limit& limit_of) {
    double least = limit_of(mount);
    while (path.size() > 1) {
        least = std::min(least, limit_of(mount + path));
        path.erase(path.rfind('/'));
    }
    return least;
}

bool has_word(const std::string& list, const std::string& word) {
    std::istringstream words(list);
    for (std::string one; std::getline(words, one, ',');)
        if (one == word) return true;
    return false;
}

}  // namespace

double processor_limit(const std::string& groups, const std::string& mount) {
    double least = kNoLimit;
    std::istringstream lines(groups);
    for (std::string line; std::getline(lines, line);) {  // "0::/user.slice" or "4:cpu,cpuacct:/docker/1f"
        const auto first = line.find(':'), second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos || line[second + 1] != '/') continue;
        const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
        if (controllers.empty())
            least = std::min(least, least_on_the_way(mount, path, limit_of_max));
        else if (has_word(controllers, "cpu"))
            for (const std::string& folder : {controllers, std::string("cpu")})
                least = std::min(least, least_on_the_way(mount + "/" + folder, path, limit_of_quota));
    }
    return least;
}

int usable_processors() {
    static const int usable = [] {
        std::ifstream file("/proc/self/cgroup");
        const std::string groups{std::istreambuf_iterator<char>(file), {}};
        const double limit = std::max(1.0, std::ceil(processor_limit(groups, "/sys/fs/cgroup")));
        const int processors = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
        return limit < processors ? static_cast<int>(limit) : processors;
    }();
    return usable;
}

}  // namespace headscope::kernels

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/machine/control_groups.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>

namespace headscope {
namespace {

using LimitOf = std::function<double(const std::string& folder)>;

/// Least limit of group `path` and its ancestors. In a container the path is often the host's, and only its end is
/// visible, as the root.
double least_on_the_way(const std::string& mount, std::string path, const LimitOf& limit_of) {
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

double least_of_groups(const std::string& groups, const std::string& mount, const std::string& controller,
                       const LimitOf& unified, const LimitOf& own) {
    double least = std::numeric_limits<double>::infinity();
    std::istringstream lines(groups);
    for (std::string line; std::getline(lines, line);) {  // "0::/user.slice" or "4:cpu,cpuacct:/docker/1f"
        const auto first = line.find(':'), second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos || line[second + 1] != '/') continue;
        const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
        if (controllers.empty())
            least = std::min(least, least_on_the_way(mount, path, unified));
        else if (has_word(controllers, controller))
            for (const std::string& folder : {controllers, controller})
                least = std::min(least, least_on_the_way(mount + "/" + folder, path, own));
    }
    return least;
}

std::string own_groups() {
    std::ifstream file("/proc/self/cgroup");
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace headscope

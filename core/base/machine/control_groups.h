// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <string>

namespace headscope {

/// The least of what `unified` says of the folders of this process's control group and of all above it, where version 2
/// rules, and of what `own` says of those in the tree of `controller`, where version 1 does. `groups` is the text of
/// /proc/self/cgroup, `mount` the file system's place (/sys/fs/cgroup). Infinity where no group is told.
double least_of_groups(const std::string& groups, const std::string& mount, const std::string& controller,
                       const std::function<double(const std::string& folder)>& unified,
                       const std::function<double(const std::string& folder)>& own);

/// The text of /proc/self/cgroup; empty where there is none.
std::string own_groups();

}  // namespace headscope

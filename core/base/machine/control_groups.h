// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <string>

namespace headscope {

/// Least limit over this process's control group and its ancestors: by `unified` in version 2, by `own` in the tree of
/// `controller` in version 1. `groups` is the text of /proc/self/cgroup, `mount` the file system's place
/// (/sys/fs/cgroup). Infinity without a limit.
double least_of_groups(const std::string& groups, const std::string& mount, const std::string& controller,
                       const std::function<double(const std::string& folder)>& unified,
                       const std::function<double(const std::string& folder)>& own);

/// The text of /proc/self/cgroup; empty where there is none.
std::string own_groups();

}  // namespace headscope

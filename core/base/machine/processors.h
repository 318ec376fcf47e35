// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace headscope {

/// How many processors this process may keep busy, at least 1: those that it may run on (its affinity), and no more
/// than its control groups give it time for, as containers are limited (half of one counts as one). Read once. Threads:
/// any.
int usable_processors();

/// Processors' worth of time that control groups allow: the least of the groups that `groups` (the text of
/// /proc/self/cgroup) names and of those above them, in the file system at `mount` (/sys/fs/cgroup), by version 2's
/// cpu.max or version 1's cpu.cfs_quota_us. Infinity where nothing limits.
double processor_limit(const std::string& groups, const std::string& mount);

}  // namespace headscope

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace headscope {

/// Bytes of memory that this process and its children may still take: available on the machine, and within the control
/// groups. Read again on each call. 0 if the system reports none. Threads: any.
double memory_room();

/// The same from the texts of /proc/meminfo and /proc/self/cgroup, and the control groups' file system at `mount`.
/// Inactive file pages do not count as used.
double memory_room(const std::string& meminfo, const std::string& groups, const std::string& mount);

}  // namespace headscope

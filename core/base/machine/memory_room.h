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

/// Bytes that this process itself may still take: the least of memory_room() and of what its limits leave, and what
/// its allocator holds free. 0 where the system does not say. Threads: any.
double own_memory_room();

/// Bytes left below the limits of address space and data, given the text of /proc/self/status (VmSize, VmData);
/// infinity without a limit.
double limits_left(const std::string& status, double address_space, double data);

}  // namespace headscope

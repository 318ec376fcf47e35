// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace headscope {

/// Bytes of memory that this process and those that it starts may still take: what the machine has available, and no
/// more than the control groups leave, as containers are limited. Asked anew each time. 0 where the system does not
/// say. Threads: any.
double memory_room();

/// The same from the text of /proc/meminfo, that of /proc/self/cgroup, and the control groups' file system at `mount`:
/// limits less what is used, of which the pages of files that nobody used of late do not count.
double memory_room(const std::string& meminfo, const std::string& groups, const std::string& mount);

}  // namespace headscope

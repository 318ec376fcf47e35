// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Facts about this process and its machine, from the system. Linux. Threads: any.

#include <string>

namespace headscope {

/// Bytes of memory that this process holds now; 0 where the system does not say.
double resident_memory();
/// Bytes that it held at its peak. Not getrusage: its peak of a spawned program includes the parent's.
double peak_memory();
/// Bytes of memory that the machine has; 0 where the system does not say.
double machine_memory();
/// "AMD EPYC 9R14"; empty where the system does not say.
std::string processor_name();

}  // namespace headscope

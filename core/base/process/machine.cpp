// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/process/machine.h"

#include <unistd.h>

#include <fstream>

namespace headscope {

double resident_memory() {
    std::ifstream pages("/proc/self/statm");
    double all = 0, resident = 0;
    pages >> all >> resident;
    return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double peak_memory() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.rfind("VmHWM:", 0) == 0) return std::stod(line.substr(6)) * 1024;
    return 0;
}

double machine_memory() {
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    return pages > 0 ? static_cast<double>(pages) * static_cast<double>(::sysconf(_SC_PAGESIZE)) : 0;
}

std::string processor_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
        const auto colon = line.find(": ");
        if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
    }
    return "";
}

}  // namespace headscope

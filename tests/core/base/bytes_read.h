// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>

namespace headscope::test {

/// Bytes that this process has read from files, sockets and pipes so far.
inline std::uint64_t bytes_read() {
    std::ifstream file("/proc/self/io");
    std::string key;
    std::uint64_t value = 0;
    while (file >> key >> value)
        if (key == "rchar:") return value;
    throw std::runtime_error("/proc/self/io has no rchar");
}

}  // namespace headscope::test

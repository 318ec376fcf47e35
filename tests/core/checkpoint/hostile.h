// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace headscope::test {

/// The bytes of a safetensors file with this header text and data; `length` lies about the header where it is given.
inline std::string safetensors_bytes(std::string_view header, std::string_view data, std::uint64_t length) {
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, sizeof length);
    bytes += header;
    bytes += data;
    return bytes;
}

inline std::string safetensors_bytes(std::string_view header, std::string_view data = {}) {
    return safetensors_bytes(header, data, header.size());
}

/// An entry: "NAME":{"dtype":"TYPE","shape":SHAPE,"data_offsets":OFFSETS}
inline std::string entry(const std::string& name, const std::string& type, const std::string& shape,
                         const std::string& offsets) {
    return '"' + name + R"(":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + '}';
}

/// A file of one float32 tensor of 4 bytes.
inline std::string tiny_safetensors(const std::string& name) {
    return safetensors_bytes("{" + entry(name, "F32", "[1]", "[0,4]") + "}", std::string(4, '\0'));
}

}  // namespace headscope::test

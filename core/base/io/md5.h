// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// MD5 (RFC 1321) and HMAC-MD5 (RFC 2104) of short texts: numbers for words, no security. Threads: const members are
// safe from several.

#include <array>
#include <cstdint>
#include <string_view>

namespace headscope {

/// 16 bytes, as they are printed.
using Md5Digest = std::array<std::uint8_t, 16>;

Md5Digest md5(std::string_view bytes);

/// HMAC-MD5 with one key, whose part is computed once: two blocks for a text below 56 bytes.
class HmacMd5 {
public:
    explicit HmacMd5(std::string_view key);
    Md5Digest operator()(std::string_view bytes) const;

private:
    std::array<std::uint32_t, 4> inner_, outer_;  ///< states behind the key's block
};

}  // namespace headscope

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/io/input_file.h"
#include "core/base/progress.h"

namespace headscope {

/// SHA-256 of bytes as they come. Threads: one at a time.
class Sha256 {
public:
    Sha256();
    ~Sha256();
    Sha256(const Sha256&) = delete;
    Sha256& operator=(const Sha256&) = delete;

    void update(const void* bytes, std::size_t size);
    void update(std::string_view bytes) { update(bytes.data(), bytes.size()); }
    /// 64 lower-case hexadecimal digits. Once; nothing may follow.
    std::string finish();

private:
    struct Context;
    std::unique_ptr<Context> context_;
};

std::string sha256_hex(std::string_view bytes);

/// Hash of a whole file, in pieces. Tests `cancellation` between pieces (Stopped) and refuses a file that changes
/// meanwhile.
std::string sha256_hex(const InputFile& file, const Cancellation& cancellation);

/// 64 digits 0-9a-f?
bool is_sha256_hex(std::string_view text);

}  // namespace headscope

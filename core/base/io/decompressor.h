// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace headscope {

/// Unpacks a compressed file piece by piece, in the memory of a window. Errors: format, with the file's name, for
/// damaged, truncated or other data; memory. Stops in a CancellationScope. Threads: one at a time.
class Decompressor {
public:
    using Take = std::function<void(std::string_view bytes)>;

    virtual ~Decompressor() = default;
    /// The next bytes of the file, of any number. `take` receives the content in pieces of at most 256 KiB.
    virtual void add(std::string_view bytes, const Take& take) = 0;
    /// Throws format unless the file may end here.
    virtual void finish() = 0;
};

/// RFC 1952, all members; zeros behind a member are skipped. `where` names the file in errors.
std::unique_ptr<Decompressor> gzip_decompressor(std::string where);
/// RFC 8878, all frames. Frames with windows beyond 128 MiB are refused.
std::unique_ptr<Decompressor> zstd_decompressor(std::string where);

}  // namespace headscope

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/io/gzip.h"

#define ZLIB_CONST
#include <zlib.h>

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/base/io/decompressor.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/text/text.h"

namespace headscope {
namespace {

constexpr std::size_t piece = std::size_t{1} << 18U;
constexpr int gzip_only = 15 + 16;  // the largest window, and zlib's sign for gzip's header

class GzipDecompressor final : public Decompressor {
public:
    explicit GzipDecompressor(std::string where) : where_(std::move(where)), room_(piece) {
        if (inflateInit2(&stream_, gzip_only) != Z_OK)
            throw Error(ErrorCode::memory, "gzip", "expected memory for zlib", "found none left");
    }
    ~GzipDecompressor() override { inflateEnd(&stream_); }
    GzipDecompressor(const GzipDecompressor&) = delete;
    GzipDecompressor& operator=(const GzipDecompressor&) = delete;

    void add(std::string_view bytes, const Take& take) override {
        while (!bytes.empty()) {
            check_cancellation();
            if (ended_) {
                bytes.remove_prefix(std::min(bytes.find_first_not_of('\0'), bytes.size()));
                if (bytes.empty()) return;
                inflateReset(&stream_);
                ended_ = false;
            }
            const std::size_t given = std::min(bytes.size(), piece);
            stream_.next_in = reinterpret_cast<const Bytef*>(bytes.data());
            stream_.avail_in = static_cast<uInt>(given);
            inflate_all(take);
            bytes.remove_prefix(given - stream_.avail_in);
        }
    }

    void finish() override {
        if (!ended_) throw Error(ErrorCode::format, where_, "expected a whole gzip file", "found its end too early");
    }

private:
    /// Until the input is used up or a member ends.
    void inflate_all(const Take& take) {
        for (;;) {
            stream_.next_out = room_.data();
            stream_.avail_out = static_cast<uInt>(room_.size());
            const int state = inflate(&stream_, Z_NO_FLUSH);
            if (state == Z_BUF_ERROR) return;  // more input is needed
            if (state != Z_OK && state != Z_STREAM_END)
                throw Error(ErrorCode::format, where_, "expected a gzip file",
                            std::string("found ") + (stream_.msg != nullptr ? escaped(stream_.msg) : "another"));
            if (const std::size_t made = room_.size() - stream_.avail_out; made > 0)
                take({reinterpret_cast<const char*>(room_.data()), made});
            ended_ = state == Z_STREAM_END;
            if (ended_ || (stream_.avail_in == 0 && stream_.avail_out > 0)) return;
        }
    }

    std::string where_;
    std::vector<Bytef> room_;
    z_stream stream_{};
    bool ended_ = false;  ///< a member has ended and no other has begun
};

}  // namespace

std::unique_ptr<Decompressor> gzip_decompressor(std::string where) {
    return std::make_unique<GzipDecompressor>(std::move(where));
}

std::string decompress_gzip(std::string_view bytes, std::uint64_t largest, const std::string& where) {
    GzipDecompressor gzip(where);
    std::string out;
    gzip.add(bytes, [&](std::string_view made) {
        if (out.size() + made.size() > largest)
            throw Error(ErrorCode::limit, where, "expected at most " + size_text(largest) + " behind gzip",
                        "found more");
        out += made;
    });
    gzip.finish();
    return out;
}

}  // namespace headscope

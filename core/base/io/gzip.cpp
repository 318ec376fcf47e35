// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/io/gzip.h"

#define ZLIB_CONST
#include <zlib.h>

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/text/text.h"

namespace headscope {
namespace {

constexpr std::size_t piece = std::size_t{1} << 18U;
constexpr int gzip_only = 15 + 16;  // the largest window, and zlib's sign for gzip's header

class Inflater {
public:
    Inflater() {
        if (inflateInit2(&stream, gzip_only) != Z_OK)
            throw Error(ErrorCode::memory, "gzip", "expected memory for zlib", "found none left");
    }
    ~Inflater() { inflateEnd(&stream); }
    Inflater(const Inflater&) = delete;
    Inflater& operator=(const Inflater&) = delete;

    z_stream stream{};
};

}  // namespace

std::string decompress_gzip(std::string_view bytes, std::uint64_t largest, const std::string& where) {
    Inflater inflater;
    z_stream& stream = inflater.stream;
    std::vector<Bytef> room(piece);
    std::string out;
    int state = Z_OK;
    do {
        check_cancellation();
        const std::size_t given = std::min(bytes.size(), piece);
        stream.next_in = reinterpret_cast<const Bytef*>(bytes.data());
        stream.avail_in = static_cast<uInt>(given);
        stream.next_out = room.data();
        stream.avail_out = static_cast<uInt>(room.size());
        state = inflate(&stream, Z_NO_FLUSH);
        bytes.remove_prefix(given - stream.avail_in);
        const std::size_t made = room.size() - stream.avail_out;
        if (out.size() + made > largest)
            throw Error(ErrorCode::limit, where, "expected at most " + size_text(largest) + " behind gzip",
                        "found more");
        out.append(reinterpret_cast<const char*>(room.data()), made);
        if (state == Z_STREAM_END) {
            bytes.remove_prefix(std::min(bytes.find_first_not_of('\0'), bytes.size()));
            if (bytes.empty()) return out;
            inflateReset(&stream);
            state = Z_OK;
        }
        // Nothing is left to give and nothing came: what should follow is missing.
        if (state == Z_BUF_ERROR || (bytes.empty() && made < room.size()))
            throw Error(ErrorCode::format, where, "expected a whole gzip file", "found its end too early");
    } while (state == Z_OK);
    throw Error(ErrorCode::format, where, "expected a gzip file",
                std::string("found ") + (stream.msg != nullptr ? escaped(stream.msg) : "another"));
}

}  // namespace headscope

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/source/source_bytes.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>

#include "core/base/io/decompressor.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/process/os_error.h"

namespace headscope::data {
namespace {

constexpr std::size_t kPiece = std::size_t{256} << 10U;
constexpr std::string_view kMark = "\xEF\xBB\xBF";

struct Packing {
    const char* extension;
    std::unique_ptr<Decompressor> (*make)(std::string where);
};
constexpr Packing kPackings[] = {{".gz", gzip_decompressor}, {".zst", zstd_decompressor}};

/// Null: the file is not packed.
const Packing* packing_of(const std::filesystem::path& path) {
    const auto* const found = std::find_if(std::begin(kPackings), std::end(kPackings),
                                           [&](const Packing& one) { return path.extension() == one.extension; });
    return found == std::end(kPackings) ? nullptr : found;
}

/// Drops the mark, whose bytes may come one by one.
class Content {
public:
    explicit Content(const TakeBytes& take) : take_(take) {}

    void add(std::string_view bytes) {
        if (stopped_) return;
        if (!begun_) {
            head_ += bytes;
            if (head_.size() < kMark.size() && kMark.starts_with(head_)) return;
            return begin();
        }
        hand_on(bytes);
    }
    void finish() {
        if (!begun_ && !stopped_) begin();
    }
    bool stopped() const { return stopped_; }

private:
    void begin() {
        begun_ = true;
        if (head_.starts_with(kMark)) at_ = kMark.size();
        hand_on(std::string_view(head_).substr(static_cast<std::size_t>(at_)));
        head_.clear();
    }
    void hand_on(std::string_view bytes) {
        if (bytes.empty()) return;
        stopped_ = !take_(bytes, at_);
        at_ += bytes.size();
    }

    const TakeBytes& take_;
    std::string head_;
    std::uint64_t at_ = 0;
    bool begun_ = false, stopped_ = false;
};

}  // namespace

std::filesystem::path unpacked_name(const std::filesystem::path& path) {
    return packing_of(path) ? std::filesystem::path(path).replace_extension() : path;
}

void read_source(const InputFile& file, const TakeBytes& take, const BytesRead& progress) {
    const Packing* const packing = packing_of(file.path());
    const auto packed = packing ? packing->make(shown(file.path())) : nullptr;
    Content content(take);
    std::string buffer;
    for (std::uint64_t at = 0; at < file.size();) {
        check_cancellation();
        buffer.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, file.size() - at)));
        file.read(at, buffer.data(), buffer.size());
        at += buffer.size();
        if (packed)
            packed->add(buffer, [&](std::string_view bytes) { content.add(bytes); });
        else
            content.add(buffer);
        if (content.stopped()) return;
        if (progress) progress(at);
    }
    if (packed) packed->finish();
    content.finish();
}

}  // namespace headscope::data

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/source/source_bytes.h"

#include <algorithm>
#include <memory>
#include <string>

#include "core/base/io/decompressor.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/process/os_error.h"

namespace headscope::data {
namespace {

constexpr std::size_t kPiece = std::size_t{256} << 10U;
constexpr std::string_view kMark = "\xEF\xBB\xBF";

std::unique_ptr<Decompressor> decompressor_of(const std::filesystem::path& path) {
    if (path.extension() == ".gz") return gzip_decompressor(shown(path));
    if (path.extension() == ".zst") return zstd_decompressor(shown(path));
    return nullptr;
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
    const bool packed = path.extension() == ".gz" || path.extension() == ".zst";
    return packed ? std::filesystem::path(path).replace_extension() : path;
}

void read_source(const InputFile& file, const TakeBytes& take, const BytesRead& progress) {
    const auto packed = decompressor_of(file.path());
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

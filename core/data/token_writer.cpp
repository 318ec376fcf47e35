// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/token_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <limits>

#include "core/base/io/output_file.h"
#include "core/base/process/os_error.h"

namespace headscope::data {
namespace {

constexpr std::int64_t narrow_ids = 65536;

std::filesystem::path folder_of(const std::filesystem::path& target) {
    return target.has_parent_path() ? target.parent_path() : std::filesystem::path(".");
}

}  // namespace

TokenWriter::TokenWriter(std::filesystem::path target, TokenFileInfo info)
    : target_(std::move(target)),
      info_(std::move(info)),
      tokens_(folder_of(target_)),
      begins_(folder_of(target_)),
      sources_(folder_of(target_)),
      labels_(folder_of(target_)) {
    info_.bytes_per_token = info_.vocabulary <= narrow_ids ? 2 : 4;
    info_.tokens = 0;
    info_.documents = 0;
}

void TokenWriter::begin_document(std::int32_t source, float label) {
    document_label_ = label;
    document_begin_ = info_.tokens;
    document_source_ = source;
}

void TokenWriter::append(std::span<const std::int32_t> ids) {
    for (const std::int32_t id : ids) {
        if (id < 0 || id >= info_.vocabulary) {
            throw Error(ErrorCode::internal, shown(target_), "expected ids below " + std::to_string(info_.vocabulary),
                        "found " + std::to_string(id));
        }
    }
    const void* bytes = ids.data();
    std::size_t size = ids.size_bytes();
    if (info_.bytes_per_token == 2) {
        narrow_.assign(ids.begin(), ids.end());
        bytes = narrow_.data();
        size = narrow_.size() * sizeof(std::uint16_t);
    }
    hash_.update(bytes, size);
    tokens_.append(bytes, size);
    info_.tokens += static_cast<std::int64_t>(ids.size());
}

void TokenWriter::end_document() {
    const bool items = info_.documents_per_item > 1;
    if (info_.tokens == document_begin_ && !items) return;
    if (info_.separator >= 0) {
        const auto id = static_cast<std::int32_t>(info_.separator);
        append({&id, 1});
    }
    if (info_.documents >= std::numeric_limits<std::int32_t>::max() - 1) {
        throw Error(ErrorCode::limit, shown(target_), "expected fewer than 2^31 documents", "found more");
    }
    begins_.append(&document_begin_, sizeof document_begin_);
    if (items) {
        begins_hash_.update(&document_begin_, sizeof document_begin_);
        labels_hash_.update(&document_label_, sizeof document_label_);
        labels_.append(&document_label_, sizeof document_label_);
        if (info_.documents % info_.documents_per_item == 0) item_begins_.push_back(document_begin_);
    }
    sources_.append(&document_source_, sizeof document_source_);
    ++info_.documents;
}

void TokenWriter::hold_out(double share) {
    const auto held_out = [share](std::size_t count) {
        return static_cast<std::size_t>(std::floor(static_cast<double>(count) * share));
    };
    if (info_.documents_per_item > 1) {
        const std::size_t kept = item_begins_.size() - held_out(item_begins_.size());
        info_.validation_begin = kept == item_begins_.size() ? info_.tokens : item_begins_[kept];
        return;
    }
    const std::int64_t words = info_.tokens / info_.numbers_per_token;
    info_.validation_begin =
        (words - static_cast<std::int64_t>(held_out(static_cast<std::size_t>(words)))) * info_.numbers_per_token;
}

void TokenWriter::publish(const Cancellation& cancellation) {
    info_.tokens_sha256 = hash_.finish();
    begins_.append(&info_.tokens, sizeof info_.tokens);
    begins_hash_.update(&info_.tokens, sizeof info_.tokens);
    if (info_.documents_per_item > 1)
        info_.documents_sha256 = sha256_hex(begins_hash_.finish() + labels_hash_.finish());
    OutputFile file(target_, {}, "token file");
    const store::TokenBlocks blocks = store::create_token_file(file.partial_path(), info_);
    const int descriptor = ::open(file.partial_path().c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) throw os_error(errno, file.partial_path(), "expected to write this token file");
    try {
        begins_.copy_to(descriptor, blocks.document_begin, target_);
        sources_.copy_to(descriptor, blocks.document_source, target_);
        if (info_.documents_per_item > 1) labels_.copy_to(descriptor, blocks.document_label, target_);
        cancellation.check();
        tokens_.copy_to(descriptor, blocks.tokens, target_);
        cancellation.check();
    } catch (...) {
        ::close(descriptor);
        throw;
    }
    if (::close(descriptor) != 0) throw os_error(errno, file.partial_path(), "expected to write this token file");
    file.publish();
}

}  // namespace headscope::data

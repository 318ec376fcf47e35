// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/io/input_file.h"

namespace headscope::checkpoint {

/// A member as the central directory describes it.
struct ZipMember {
    std::uint64_t header = 0;  ///< where its local header begins
    std::uint64_t end = 0;     ///< where the next member, or the directory, begins
    std::uint64_t bytes = 0;
    std::uint32_t crc = 0;
    std::uint16_t flags = 0;
    std::uint16_t method = 0;
};

/// Position of a member's bytes in the file.
struct ZipExtent {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    std::optional<std::uint32_t> crc;  ///< empty in archives that torch.save wrote without checksums (all are 0)
};

/// The directory of a zip archive, zip64 or not, for reading stored members in place. Stricter than unzip, because two
/// readers must never see two different archives in one file: the end record lies at the very end without a comment,
/// the directory right before it; every member lies before the directory, none overlaps another, no name comes twice.
/// Names are labels, never paths. Errors: format; unsupported for encrypted, split or compressed ones.
/// `file` must outlive the archive. Threads: const members from several at once.
class ZipArchive {
public:
    explicit ZipArchive(const InputFile& file);

    const std::map<std::string, ZipMember, std::less<>>& members() const noexcept { return members_; }
    const ZipMember* find(std::string_view name) const;

    /// The place of a stored member's bytes; its local header must say what the directory says.
    ZipExtent locate(std::string_view name) const;

    /// A member's bytes, at most `limit` of them, checked against its checksum.
    std::string read(std::string_view name, std::uint64_t limit) const;

    /// "model.bin, member "archive/data.pkl"", for errors.
    std::string place(std::string_view name) const;

private:
    struct Directory {
        std::uint64_t begin = 0;
        std::uint64_t bytes = 0;
        std::uint64_t members = 0;
    };
    Directory find_directory() const;
    Directory read_zip64(std::uint64_t end, const Directory& said) const;
    void read_directory(const Directory& directory);
    void check_order(std::uint64_t directory_begin);
    void check_descriptor(std::string_view name, const ZipMember& member, std::uint64_t at) const;

    const InputFile& file_;
    std::map<std::string, ZipMember, std::less<>> members_;
    bool has_checksums_ = false;
};

}  // namespace headscope::checkpoint

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/pytorch/zip_archive.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/checkpoint/pytorch/crc32.h"
#include "core/checkpoint/pytorch/zip_fields.h"

namespace headscope::checkpoint {
namespace {

// Sizes of the records, without what varies.
constexpr std::uint64_t end_size = 22;
constexpr std::uint64_t locator_size = 20;
constexpr std::uint64_t zip64_end_size = 56;
constexpr std::uint64_t entry_size = 46;
constexpr std::uint64_t local_size = 30;

constexpr std::uint64_t largest_directory = 64U << 20U;
constexpr std::uint64_t most_members = 1U << 20U;

constexpr std::uint16_t encrypted = 1U << 0U | 1U << 6U | 1U << 13U;
constexpr std::uint16_t has_descriptor = 1U << 3U;
constexpr std::uint16_t patched = 1U << 5U;

}  // namespace

ZipArchive::ZipArchive(const InputFile& file) : file_(file) {
    const Directory directory = find_directory();
    read_directory(directory);
    check_order(directory.begin);
}

std::string ZipArchive::place(std::string_view name) const {
    return shown(file_.path()) + ", member \"" + escaped(name) + '"';
}

const ZipMember* ZipArchive::find(std::string_view name) const {
    const auto found = members_.find(name);
    return found == members_.end() ? nullptr : &found->second;
}

ZipArchive::Directory ZipArchive::find_directory() const {
    const std::string where = shown(file_.path());
    const std::string wish = "expected a zip archive that ends in its end record, without a comment";
    if (file_.size() < end_size)
        throw Error(ErrorCode::format, where, wish, "found " + std::to_string(file_.size()) + " bytes");
    const std::uint64_t end = file_.size() - end_size;
    std::array<char, end_size> bytes{};
    file_.read(end, bytes.data(), bytes.size());
    const ZipFields record(bytes.data(), bytes.size());
    if (record.u32(0) != 0x06054b50 || record.u16(20) != 0) {
        throw Error(ErrorCode::format, where + ", byte " + std::to_string(end), wish,
                    "found something else: the file is cut short or more was added to it");
    }
    Directory said{record.u32(16), record.u32(12), record.u16(10)};
    const auto refuse_split = [&] {
        throw Error(ErrorCode::unsupported, where + ", byte " + std::to_string(end),
                    "expected a zip archive in one file", "found a part of several");
    };
    for (const std::size_t disk : {4U, 6U}) {
        if (record.u16(disk) != 0 && record.u16(disk) != 0xFFFF) refuse_split();
    }
    if (record.u16(8) != record.u16(10)) refuse_split();
    std::uint64_t directory_end = end;
    std::array<char, 4> magic{};
    if (end >= locator_size) file_.read(end - locator_size, magic.data(), magic.size());
    if (ZipFields(magic.data(), magic.size()).u32(0) == 0x07064b50) {
        said = read_zip64(end, said);
        directory_end = end - locator_size - zip64_end_size;
    }
    if (said.begin > directory_end || said.bytes != directory_end - said.begin) {
        throw Error(ErrorCode::format, where + ", byte " + std::to_string(end),
                    "expected the archive's directory to end where its end record begins, at byte " +
                        std::to_string(directory_end),
                    "found " + std::to_string(said.bytes) + " bytes from byte " + std::to_string(said.begin));
    }
    if (said.bytes > largest_directory || said.members > most_members) {
        throw Error(ErrorCode::limit, where,
                    "expected at most " + count_text(most_members) + " members in a directory of at most " +
                        size_text(largest_directory),
                    "found " + count_text(said.members) + " in " + size_text(said.bytes));
    }
    if (said.members > said.bytes / entry_size) {
        throw Error(ErrorCode::format, where + ", byte " + std::to_string(end),
                    "expected at least " + std::to_string(entry_size) + " bytes of directory for each member",
                    "found " + std::to_string(said.bytes) + " for " + std::to_string(said.members) + " members");
    }
    return said;
}

ZipArchive::Directory ZipArchive::read_zip64(std::uint64_t end, const Directory& said) const {
    const std::string where = shown(file_.path());
    const std::uint64_t locator_begin = end - locator_size;
    std::array<char, locator_size> locator_bytes{};
    file_.read(locator_begin, locator_bytes.data(), locator_bytes.size());
    const ZipFields locator(locator_bytes.data(), locator_bytes.size());
    if (locator.u32(4) != 0 || locator.u32(16) > 1) {
        throw Error(ErrorCode::unsupported, where + ", byte " + std::to_string(locator_begin),
                    "expected a zip archive in one file", "found a part of several");
    }
    const auto refuse = [&](std::uint64_t byte, const std::string& expected, const std::string& found) {
        throw Error(ErrorCode::format, where + ", byte " + std::to_string(byte), expected, found);
    };
    if (locator_begin < zip64_end_size || locator.u64(8) != locator_begin - zip64_end_size) {
        refuse(locator_begin, "expected the zip64 end record right before its locator",
               "found byte " + std::to_string(locator.u64(8)) + " given as its place");
    }
    const std::uint64_t begin = locator_begin - zip64_end_size;
    std::array<char, zip64_end_size> bytes{};
    file_.read(begin, bytes.data(), bytes.size());
    const ZipFields record(bytes.data(), bytes.size());
    if (record.u32(0) != 0x06064b50 || record.u64(4) != zip64_end_size - 12) {
        refuse(begin, "expected a zip64 end record of " + std::to_string(zip64_end_size) + " bytes",
               "found something else");
    }
    if (record.u32(16) != 0 || record.u32(20) != 0 || record.u64(24) != record.u64(32)) {
        throw Error(ErrorCode::unsupported, where + ", byte " + std::to_string(begin),
                    "expected a zip archive in one file", "found a part of several");
    }
    const Directory directory{record.u64(48), record.u64(40), record.u64(32)};
    const auto agree = [](std::uint64_t small, std::uint64_t large, std::uint64_t all_ones) {
        return small == large || small == all_ones;
    };
    if (!agree(said.begin, directory.begin, 0xFFFFFFFF) || !agree(said.bytes, directory.bytes, 0xFFFFFFFF) ||
        !agree(said.members, directory.members, 0xFFFF)) {
        refuse(begin, "expected the archive's two end records to agree", "found that they do not");
    }
    return directory;
}

void ZipArchive::read_directory(const Directory& directory) {
    std::string bytes(static_cast<std::size_t>(directory.bytes), '\0');
    file_.read(directory.begin, bytes.data(), bytes.size());
    std::size_t at = 0;
    for (std::uint64_t i = 0; i < directory.members; ++i) {
        const std::string where = shown(file_.path()) + ", byte " + std::to_string(directory.begin + at);
        if (bytes.size() - at < entry_size || ZipFields(bytes.data() + at, entry_size).u32(0) != 0x02014b50) {
            throw Error(ErrorCode::format, where, "expected a directory entry of the zip archive",
                        "found something else");
        }
        const ZipFields entry(bytes.data() + at, entry_size);
        const std::size_t name_size = entry.u16(28), extra_size = entry.u16(30), comment_size = entry.u16(32);
        const std::size_t whole = entry_size + name_size + extra_size + comment_size;
        if (whole > bytes.size() - at) {
            throw Error(ErrorCode::format, where, "expected a directory entry within the directory",
                        "found one of " + std::to_string(whole) + " bytes where " + std::to_string(bytes.size() - at) +
                            " are left");
        }
        const std::string_view name(bytes.data() + at + entry_size, name_size);
        Zip64Sizes sizes{entry.u32(24), entry.u32(20), entry.u32(42)};
        if (!read_zip64_extra({bytes.data() + at + entry_size + name_size, extra_size}, sizes)) {
            throw Error(ErrorCode::format, place(name), "expected well-formed extra fields in the directory",
                        "found others");
        }
        if (entry.u16(34) != 0 && entry.u16(34) != 0xFFFF) {
            throw Error(ErrorCode::unsupported, place(name), "expected a zip archive in one file",
                        "found a part of several");
        }
        const ZipMember member{sizes.header, 0, sizes.plain, entry.u32(16), entry.u16(8), entry.u16(10)};
        if (member.method == 0 && sizes.packed != sizes.plain) {
            throw Error(ErrorCode::format, place(name), "expected a stored member to have one size",
                        "found " + std::to_string(sizes.packed) + " and " + std::to_string(sizes.plain) + " bytes");
        }
        // The end is the least that it can be until the members are known in their order.
        std::uint64_t end = local_size + name_size;
        if (__builtin_add_overflow(end, sizes.packed, &end) || __builtin_add_overflow(end, sizes.header, &end) ||
            end > directory.begin) {
            throw Error(ErrorCode::format, place(name), "expected a member that lies before the archive's directory",
                        "found " + std::to_string(sizes.packed) + " bytes behind a header at byte " +
                            std::to_string(sizes.header));
        }
        const auto [slot, fresh] = members_.try_emplace(std::string(name), member);
        if (!fresh) {
            throw Error(ErrorCode::format, where, "expected each member's name once in the zip archive",
                        "found \"" + escaped(name) + "\" again");
        }
        slot->second.end = end;
        has_checksums_ = has_checksums_ || member.crc != 0;
        at += whole;
    }
    if (at != bytes.size()) {
        throw Error(ErrorCode::format, shown(file_.path()) + ", byte " + std::to_string(directory.begin + at),
                    "expected the directory's end behind its " + std::to_string(directory.members) + " entries",
                    "found " + std::to_string(bytes.size() - at) + " bytes more");
    }
}

void ZipArchive::check_order(std::uint64_t directory_begin) {
    std::vector<std::pair<const std::string*, ZipMember*>> order;
    order.reserve(members_.size());
    for (auto& [name, member] : members_) order.emplace_back(&name, &member);
    std::sort(order.begin(), order.end(),
              [](const auto& a, const auto& b) { return a.second->header < b.second->header; });
    for (std::size_t i = 0; i < order.size(); ++i) {
        const std::uint64_t limit = i + 1 < order.size() ? order[i + 1].second->header : directory_begin;
        if (order[i].second->end > limit) {
            throw Error(ErrorCode::format, place(*order[i].first),
                        "expected it to end before the next member, at byte " + std::to_string(limit),
                        "found its end at byte " + std::to_string(order[i].second->end) + " or later: members overlap");
        }
        order[i].second->end = limit;
    }
}

ZipExtent ZipArchive::locate(std::string_view name) const {
    const ZipMember* member = find(name);
    if (member == nullptr) {
        throw Error(ErrorCode::format, place(name), "expected this member in the zip archive", "found none");
    }
    if ((member->flags & encrypted) != 0) {
        throw Error(ErrorCode::unsupported, place(name), "expected a member that is not encrypted",
                    "found an encrypted one");
    }
    if (member->method != 0 || (member->flags & patched) != 0) {
        throw Error(ErrorCode::unsupported, place(name),
                    "expected a member that is stored as it is, as PyTorch writes them",
                    member->method == 8 ? "found a deflated one: unpack the archive and pack it with zip -0"
                                        : "found compression method " + std::to_string(member->method));
    }
    std::string header(local_size + name.size(), '\0');
    file_.read(member->header, header.data(), header.size());
    const ZipFields local(header.data(), local_size);
    const auto refuse = [&](const std::string& what) {
        throw Error(ErrorCode::format, place(name) + ", byte " + std::to_string(member->header),
                    "expected a local header that says what the archive's directory says", "found " + what);
    };
    if (local.u32(0) != 0x04034b50) refuse("no local header");
    if (local.u16(26) != name.size() || std::string_view(header).substr(local_size) != name) refuse("another name");
    if (local.u16(6) != member->flags) refuse("other flags");
    if (local.u16(8) != member->method) refuse("another method");
    const std::uint64_t begin = member->header + header.size() + local.u16(28);
    if (begin > member->end || member->bytes > member->end - begin) {
        refuse("extra fields that push its bytes over the next member");
    }
    Zip64Sizes sizes{local.u32(22), local.u32(18), 0};
    std::string extra(local.u16(28), '\0');
    file_.read(member->header + header.size(), extra.data(), extra.size());
    if (!read_zip64_extra(extra, sizes)) refuse("malformed extra fields");
    const bool later = (member->flags & has_descriptor) != 0;  // sizes and checksum follow the bytes
    const auto agrees = [later](std::uint64_t said, std::uint64_t wanted) {
        return said == wanted || (later && said == 0);
    };
    if (!agrees(sizes.plain, member->bytes) || !agrees(sizes.packed, member->bytes)) refuse("another size");
    if (!agrees(local.u32(14), member->crc)) refuse("another checksum");
    if (later) check_descriptor(name, *member, begin + member->bytes);
    return {begin, member->bytes, has_checksums_ ? std::optional(member->crc) : std::nullopt};
}

void ZipArchive::check_descriptor(std::string_view name, const ZipMember& member, std::uint64_t at) const {
    std::array<char, 24> bytes{};
    file_.read(at, bytes.data(), static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), member.end - at)));
    const ZipFields said(bytes.data(), bytes.size());
    const bool narrow = said.u32(8) == member.bytes && said.u32(12) == member.bytes;
    const bool wide = said.u64(8) == member.bytes && said.u64(16) == member.bytes;
    if (said.u32(0) != 0x08074b50 || said.u32(4) != member.crc || (!narrow && !wide)) {
        throw Error(ErrorCode::format, place(name) + ", byte " + std::to_string(at),
                    "expected a data descriptor that says what the archive's directory says", "found something else");
    }
}

std::string ZipArchive::read(std::string_view name, std::uint64_t limit) const {
    const ZipExtent extent = locate(name);
    if (extent.bytes > limit) {
        throw Error(ErrorCode::limit, place(name), "expected at most " + size_text(limit),
                    "found " + size_text(extent.bytes));
    }
    std::string bytes(static_cast<std::size_t>(extent.bytes), '\0');
    file_.read(extent.begin, bytes.data(), bytes.size());
    if (extent.crc && crc32(0, bytes.data(), bytes.size()) != *extent.crc) {
        throw Error(ErrorCode::format, place(name), "expected bytes that fit their checksum",
                    "found others: the file is damaged");
    }
    return bytes;
}

}  // namespace headscope::checkpoint

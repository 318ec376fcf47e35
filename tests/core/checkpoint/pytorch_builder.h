// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// PyTorch files made by hand, with every field open to a lie.

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/pytorch/crc32.h"

namespace headscope::test {

template <class Number>
std::string little_endian(Number number) {
    std::string bytes(sizeof number, '\0');
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
}

/// The opcodes of a pickle, one after the other.
class PickleText {
public:
    explicit PickleText(int protocol = 2) : text_("\x80" + std::string(1, static_cast<char>(protocol))) {}

    PickleText& raw(std::string_view bytes) {
        text_ += bytes;
        return *this;
    }
    PickleText& text(std::string_view value) {
        return raw("X" + little_endian(static_cast<std::uint32_t>(value.size())) + std::string(value));
    }
    PickleText& integer(std::int64_t value) {
        if (value >= 0 && value < 256) return raw(std::string("K") + static_cast<char>(value));
        return raw("\x8a\x08" + little_endian(value));
    }
    PickleText& tuple(const std::vector<std::int64_t>& values) {
        raw("(");
        for (const std::int64_t value : values) integer(value);
        return raw("t");
    }
    PickleText& global(std::string_view module, std::string_view name) {
        return raw("c" + std::string(module) + "\n" + std::string(name) + "\n");
    }
    /// A persistent id: a storage.
    PickleText& storage(std::string_view type, std::string_view key, std::int64_t elements) {
        raw("(").text("storage").global("torch", type).text(key).text("cpu").integer(elements);
        return raw("tQ");
    }
    /// A call of _rebuild_tensor_v2.
    PickleText& tensor(std::string_view type, std::string_view key, std::int64_t elements, std::int64_t offset,
                       const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides) {
        global("torch._utils", "_rebuild_tensor_v2").raw("(").storage(type, key, elements).integer(offset);
        tuple(sizes).tuple(strides).raw("\x89").global("collections", "OrderedDict");
        return raw(")RtR");
    }
    /// An entry of a dictionary: a float32 tensor that is all of the storage "0" of 6 elements.
    PickleText& plain_entry(std::string_view name) {
        return text(name).tensor("FloatStorage", "0", 6, 0, {2, 3}, {3, 1}).raw("s");
    }
    std::string end() const { return text_ + "."; }

private:
    std::string text_;
};

struct ZipEntry {
    std::string name;
    std::string data;
    std::uint16_t flags = 0;
    std::uint16_t method = 0;
    std::string extra{};        ///< of the local header
    std::string description{};  ///< extra field of the directory
};

/// The records of a zip archive, as they will be written: change what shall lie.
struct ZipParts {
    std::vector<ZipEntry> entries;
    std::vector<std::string> locals;     ///< header, data
    std::vector<std::string> directory;  ///< one entry each
    std::string between;                 ///< between members and directory
    std::string zip64;                   ///< end record and locator, if any
    std::string end;

    std::string bytes() const {
        std::string all;
        for (const std::string& local : locals) all += local;
        all += between;
        for (const std::string& entry : directory) all += entry;
        return all + zip64 + end;
    }
};

inline void put(std::string& record, std::size_t offset, const std::string& bytes) {
    record.replace(offset, bytes.size(), bytes);
}

inline ZipParts zip_parts(const std::vector<ZipEntry>& entries, bool zip64 = false) {
    using u16 = std::uint16_t;
    using u32 = std::uint32_t;
    using u64 = std::uint64_t;
    ZipParts parts;
    parts.entries = entries;
    u64 offset = 0, directory = 0;
    for (const ZipEntry& entry : entries) {
        const u32 crc = checkpoint::crc32(0, entry.data.data(), entry.data.size());
        const std::string size = little_endian(static_cast<u32>(entry.data.size()));
        const std::string common = little_endian(entry.flags) + little_endian(entry.method) + std::string(4, '\0') +
                                   little_endian(crc) + size + size +
                                   little_endian(static_cast<u16>(entry.name.size()));
        const std::string local = "PK\3\4" + little_endian(u16{20}) + common +
                                  little_endian(static_cast<u16>(entry.extra.size())) + entry.name + entry.extra;
        parts.locals.push_back(local + entry.data);
        parts.directory.push_back("PK\1\2" + little_endian(u32{0x00140014}) + common +
                                  little_endian(static_cast<u16>(entry.description.size())) + std::string(10, '\0') +
                                  little_endian(static_cast<u32>(offset)) + entry.name + entry.description);
        offset += parts.locals.back().size();
        directory += parts.directory.back().size();
    }
    const u64 count = entries.size();
    if (zip64) {
        const u64 at = offset + directory;
        parts.zip64 = "PK\6\6" + little_endian(u64{44}) + little_endian(u32{0x002d002d}) + std::string(8, '\0') +
                      little_endian(count) + little_endian(count) + little_endian(directory) + little_endian(offset) +
                      "PK\6\7" + std::string(4, '\0') + little_endian(at) + little_endian(u32{1});
    }
    parts.end = "PK\5\6" + std::string(4, '\0') + little_endian(static_cast<u16>(count)) +
                little_endian(static_cast<u16>(count)) + little_endian(static_cast<u32>(directory)) +
                little_endian(static_cast<u32>(offset)) + std::string(2, '\0');
    return parts;
}

/// 24 bytes: the float32 numbers 0 to 5.
inline std::string six_floats() {
    std::string bytes;
    for (int i = 0; i < 6; ++i) bytes += little_endian(static_cast<float>(i));
    return bytes;
}

/// The members of a good file: the pickle and storage "0", 6 float32.
inline std::vector<ZipEntry> pytorch_entries(const std::string& pickle, const std::string& storage = six_floats()) {
    return {{"archive/data.pkl", pickle},
            {"archive/byteorder", "little"},
            {"archive/data/0", storage},
            {"archive/version", "3\n"}};
}

inline std::string pytorch_bytes(const std::string& pickle, const std::string& storage = six_floats()) {
    return zip_parts(pytorch_entries(pickle, storage)).bytes();
}

/// A state dictionary of one tensor, "weight" [2, 3], of the numbers 0 to 5.
inline std::string good_pickle() {
    return PickleText().raw("}").plain_entry("weight").end();
}

}  // namespace headscope::test

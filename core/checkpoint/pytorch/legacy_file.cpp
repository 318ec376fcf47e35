// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/pytorch/legacy_file.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/checkpoint/pytorch/pickle_reader.h"

namespace headscope::checkpoint {
namespace {

/// 0x1950a86a20f9469cfc6c, as pickles of protocol 2 and later write it, and their end.
constexpr std::string_view magic = "\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
constexpr std::int64_t protocol = 1001;
/// Enough for the pickles of most models; more is read where it is not.
constexpr std::uint64_t first_look = 4U << 20U;
constexpr std::size_t small_pickle = 4096;  // the three before the value's have a hundred bytes

/// Value under a key of a dictionary.
std::optional<PickleRef> find_entry(const PickleObjects& objects, PickleRef dictionary, std::string_view key) {
    for (std::uint32_t at = objects[dictionary].first; at != no_ref; at = objects.elements[at].next) {
        const PickleElement& element = objects.elements[at];
        if (objects[element.key].kind == PickleKind::text && objects.text(element.key) == key) return element.value;
    }
    return std::nullopt;
}

/// The pickles of a file's first bytes, one after the other.
class Pickles {
public:
    Pickles(const InputFile& file, std::uint64_t size)
        : file_(shown(file.path())), bytes_(static_cast<std::size_t>(size), '\0') {
        file.read(0, bytes_.data(), bytes_.size());
    }

    PickleObjects next(std::size_t most = std::string::npos) {
        std::size_t behind = 0;
        where_ = file_ + ", the pickle from byte " + std::to_string(at_) + " on";
        PickleObjects objects = read_pickle(bytes_.substr(at_, most), where_, nullptr, &behind);
        at_ += behind;
        return objects;
    }
    std::string_view read() const { return std::string_view(bytes_).substr(0, at_); }
    const std::string& where() const { return where_; }
    std::uint64_t at() const { return at_; }

private:
    std::string file_, where_, bytes_;
    std::size_t at_ = 0;
};

void check_head(Pickles& pickles) {
    pickles.next(small_pickle);
    if (!pickles.read().ends_with(magic))
        throw Error(ErrorCode::format, pickles.where(), "expected the number that PyTorch's files begin with",
                    "found something else");
    const PickleObjects version = pickles.next(small_pickle);
    const PickleNode& number = version[version.root];
    if (number.kind != PickleKind::integer || number.number != protocol) {
        throw Error(ErrorCode::unsupported, pickles.where(), "expected protocol " + std::to_string(protocol),
                    "found " + (number.kind == PickleKind::integer ? std::to_string(number.number)
                                                                   : version.describe(version.root)));
    }
    const PickleObjects machine = pickles.next(small_pickle);
    const bool is_dictionary = machine[machine.root].kind == PickleKind::dictionary;
    const auto little = is_dictionary ? find_entry(machine, machine.root, "little_endian") : std::nullopt;
    if (!little || machine[*little].kind != PickleKind::boolean)
        throw Error(ErrorCode::format, pickles.where(), "expected a dictionary that says little_endian",
                    is_dictionary ? "found none" : "found " + machine.describe(machine.root));
    if (machine[*little].number == 0)
        throw Error(ErrorCode::unsupported, pickles.where(), "expected little-endian numbers", "found big-endian ones");
}

/// All pickles of the file's first `size` bytes.
struct Head {
    LegacyFile file;
    PickleObjects keys;
    std::string where;       ///< of the keys
    std::uint64_t data = 0;  ///< where the storages begin
};

Head read_head(const InputFile& file, std::uint64_t size) {
    Pickles pickles(file, size);
    check_head(pickles);
    Head head;
    head.file.objects = pickles.next();
    head.file.where = pickles.where();
    head.keys = pickles.next();
    head.where = pickles.where();
    head.data = pickles.at();
    return head;
}

Head read_head(const InputFile& file) {
    const std::uint64_t most = std::min<std::uint64_t>(file.size(), largest_pickle);
    for (std::uint64_t size = first_look; size < most; size *= 8) {
        try {
            return read_head(file, size);
        } catch (const Error& error) {  // perhaps that more bytes were expected
            if (error.code() != ErrorCode::format) throw;
        }
    }
    return read_head(file, most);
}

/// Description of a storage in the value's pickle.
struct Said {
    std::uint64_t elements = 0;
    std::uint32_t bytes = 0;  ///< of one
    bool operator==(const Said&) const = default;
};

std::unordered_map<std::string, Said> said_of_storages(const LegacyFile& file) {
    const PickleObjects& objects = file.objects;
    std::unordered_map<std::string, Said> all;
    for (const PickleNode& node : objects.nodes) {
        if (node.kind != PickleKind::storage) continue;
        const PickleGlobal& type = pickle_global(static_cast<std::uint32_t>(objects[node.first].number));
        const Said said{static_cast<std::uint64_t>(node.number), type.type.bytes};
        const auto [slot, fresh] = all.try_emplace(std::string(objects.text(node.last)), said);
        if (!fresh && !(slot->second == said))
            throw Error(ErrorCode::format, file.where, "expected one type and size of each storage",
                        "found two of \"" + escaped(slot->first) + '"');
    }
    return all;
}

void find_storages(const InputFile& file, Head& head) {
    const auto said = said_of_storages(head.file);
    const PickleObjects& keys = head.keys;
    if (keys[keys.root].kind != PickleKind::list)
        throw Error(ErrorCode::format, head.where, "expected a list of the storages' keys",
                    "found " + keys.describe(keys.root));
    std::uint64_t at = head.data;
    const auto left = [&] { return file.size() - at; };
    for (std::uint32_t next = keys[keys.root].first; next != no_ref; next = keys.elements[next].next) {
        const PickleRef ref = keys.elements[next].value;
        const std::string key(keys.text(ref));
        const auto found = keys[ref].kind == PickleKind::text ? said.find(key) : said.end();
        if (found == said.end() || head.file.storages.count(key) != 0)
            throw Error(
                ErrorCode::format, head.where, "expected the key of each storage once",
                keys[ref].kind == PickleKind::text ? "found \"" + escaped(key) + '"' : "found " + keys.describe(ref));
        const std::string place = shown(file.path()) + ", storage \"" + escaped(key) + '"';
        const auto expect_left = [&](std::uint64_t bytes) {
            if (bytes > left())
                throw Error(ErrorCode::format, place, "expected " + std::to_string(bytes) + " bytes more",
                            "found " + std::to_string(left()) + " to the end");
        };
        std::int64_t elements = 0;
        expect_left(sizeof elements);
        file.read(at, &elements, sizeof elements);
        at += sizeof elements;
        if (elements != static_cast<std::int64_t>(found->second.elements))
            throw Error(ErrorCode::format, place,
                        "expected " + std::to_string(found->second.elements) + " elements, as the pickle says",
                        "found " + std::to_string(elements));
        const std::uint64_t bytes =
            found->second.elements * found->second.bytes;  // the pickle's reader has seen that it fits
        expect_left(bytes);
        head.file.storages.emplace(key, ZipExtent{at, bytes, std::nullopt});
        at += bytes;
    }
    if (head.file.storages.size() != said.size())
        throw Error(ErrorCode::format, head.where, "expected the keys of " + std::to_string(said.size()) + " storages",
                    "found " + std::to_string(head.file.storages.size()));
    if (left() != 0)
        throw Error(ErrorCode::format, shown(file.path()), "expected nothing behind the last storage",
                    "found " + std::to_string(left()) + " bytes");
}

}  // namespace

bool is_legacy_pytorch(std::string_view first_bytes) {
    return first_bytes.starts_with('\x80') && first_bytes.substr(0, 32).find(magic) != std::string_view::npos;
}

LegacyFile read_legacy_file(const InputFile& file) {
    Head head = read_head(file);
    find_storages(file, head);
    return std::move(head.file);
}

}  // namespace headscope::checkpoint

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/pytorch/pytorch_file.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <unordered_map>
#include <utility>

#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/checkpoint/data_type.h"
#include "core/checkpoint/pytorch/legacy_file.h"
#include "core/checkpoint/pytorch/pickle_reader.h"
#include "core/checkpoint/pytorch/state_dict.h"
#include "core/checkpoint/pytorch/zip_archive.h"

namespace headscope::checkpoint {
namespace {

constexpr std::uint64_t sharing = 64;  // how many times the file's bytes its tensors may have together
constexpr std::uint64_t always_allowed = 64U << 20U;
constexpr std::uint64_t most_dimensions_together = 4U << 20U;

constexpr std::string_view pickle_name = "data.pkl";

/// The folder in the archive that data.pkl lies in, with its slash; throws what the archive is instead if it has none.
std::string archive_root(const ZipArchive& archive, const InputFile& file) {
    std::vector<std::string> pickles, names;
    bool code = false;
    for (const auto& [name, member] : archive.members()) {
        if (names.size() < 5) names.push_back(name);
        const std::size_t slash = name.find('/');
        const std::string_view rest = std::string_view(name).substr(slash == std::string::npos ? 0 : slash + 1);
        if (slash != std::string::npos && rest == pickle_name) pickles.push_back(name.substr(0, slash + 1));
        code = code || (slash != std::string::npos && (rest.starts_with("code/") || rest == "constants.pkl"));
    }
    const std::string where = shown(file.path());
    const std::string wish = "expected an archive as torch.save writes it, with one NAME/data.pkl";
    if (code) {
        throw Error(ErrorCode::unsupported, where, wish,
                    "found a TorchScript archive, which is a program: save the model's state_dict() instead");
    }
    if (pickles.size() > 1) {
        throw Error(ErrorCode::format, where, wish, "found " + std::to_string(pickles.size()) + " of them");
    }
    if (pickles.empty()) {
        throw Error(ErrorCode::unsupported, where, wish,
                    names.empty() ? "found an empty zip archive"
                                  : "found a zip archive of " + std::to_string(archive.members().size()) +
                                        " other members: " + list_text(names, 3));
    }
    return pickles.front();
}

void require_little_endian(const ZipArchive& archive, const std::string& root) {
    const std::string name = root + "byteorder";
    if (archive.find(name) == nullptr) return;  // PyTorch 2.0 and before, which ran on little-endian machines
    const std::string order = archive.read(name, 64);
    if (order == "little") return;
    throw Error(order == "big" ? ErrorCode::unsupported : ErrorCode::format, archive.place(name),
                "expected little-endian numbers", "found \"" + escaped(order) + '"');
}

/// The archive's format, as PyTorch counts it: it refuses others, and what has none.
void require_known_version(const ZipArchive& archive, const std::string& root) {
    constexpr int newest = 10;
    std::string name = root + "version";
    if (archive.find(name) == nullptr) name = root + ".data/version";
    const std::string text = archive.read(name, 64);
    char* end = nullptr;
    const long long version = std::strtoll(text.c_str(), &end, 10);
    if (version >= 1 && version <= newest) return;
    throw Error(end != text.c_str() ? ErrorCode::unsupported : ErrorCode::format, archive.place(name),
                "expected a version from 1 to " + std::to_string(newest) + " of PyTorch's archives",
                "found \"" + escaped(text) + '"');
}

/// Turns the pickle's tensors into places in the file.
class Placement {
public:
    /// `locate`: the place of the storage that has a key.
    using Locate = std::function<ZipExtent(const std::string& key)>;
    Placement(const InputFile& file, const PickleObjects& objects, Locate locate)
        : file_(file), objects_(objects), locate_(std::move(locate)) {}

    void place(const StateDict::Entry& entry, PytorchFile& result) {
        const PickleNode& node = objects_[entry.value];
        const auto unreadable = [&](std::string found) { result.unreadable.emplace(entry.name, std::move(found)); };
        if (node.kind == PickleKind::object) return unreadable("found " + objects_.describe(entry.value));
        const PickleTensor& tensor = objects_.tensors[static_cast<std::size_t>(node.number)];
        if (!tensor.type.type) {
            return unreadable("found the type " + std::string(tensor.type.name.empty() ? "untyped" : tensor.type.name) +
                              " of PyTorch");
        }
        if (tensor.altered) return unreadable("found a conjugated or negated view of other numbers");
        TensorInfo info;
        info.name = entry.name;
        info.type = *tensor.type.type;
        info.shape = objects_.integers(tensor.sizes);
        dimensions_ += info.shape.size();
        if (dimensions_ > most_dimensions_together) refuse_limit(entry.name, "fewer dimensions in all tensors");
        const auto all_bits = checked_bits(info.shape, info.type, info.elements);
        if (!all_bits) return unreadable("found a shape of 2^64 bits or more");
        info.bytes = *all_bits / 8;
        std::uint64_t span = 0;
        info.strides = strides(objects_.integers(tensor.strides), info, span);
        if (info.elements > 0 && static_cast<std::uint64_t>(info.elements) > span) {
            if (info.bytes > file_.size() || repeated_ > file_.size() - info.bytes) {
                return unreadable("found " + count_text(static_cast<std::uint64_t>(info.elements)) +
                                  " elements expanded from " + count_text(span));
            }
            repeated_ += info.bytes;
        }
        if (__builtin_add_overflow(together_, info.bytes, &together_) ||
            (together_ > always_allowed && (together_ - always_allowed) / sharing > file_.size())) {
            refuse_limit(entry.name, "tensors of at most " + std::to_string(sharing) + " times the file's bytes");
        }
        const ZipExtent& extent = storage(tensor.storage);
        info.begin = extent.begin + static_cast<std::uint64_t>(tensor.offset) * tensor.type.bytes;
        if (extent.crc) info.checksum = TensorInfo::Checksum{extent.begin, extent.bytes, *extent.crc};
        result.tensors.emplace(entry.name, std::move(info));
    }

private:
    /// The strides, or none where the elements follow each other; `span`: elements from the first to the last.
    static std::vector<std::int64_t> strides(std::vector<std::int64_t> given, const TensorInfo& info,
                                             std::uint64_t& span) {
        span = info.elements > 0 ? 1 : 0;
        if (info.elements == 0) return {};
        bool follow = true;
        std::int64_t next = 1;
        for (std::size_t i = info.shape.size(); i-- > 0;) {
            if (info.shape[i] == 1) continue;
            follow = follow && given[i] == next;
            next *= info.shape[i];
            span += static_cast<std::uint64_t>(info.shape[i] - 1) * static_cast<std::uint64_t>(given[i]);
        }
        if (follow) given.clear();
        return given;
    }

    const ZipExtent& storage(PickleRef ref) {
        const std::string key(objects_.text(objects_[ref].last));
        const auto [slot, fresh] = extents_.try_emplace(key);
        if (fresh) slot->second = locate_(key);
        return slot->second;
    }

    [[noreturn]] void refuse_limit(const std::string& name, const std::string& what) const {
        throw Error(ErrorCode::limit, shown(file_.path()) + ", tensor \"" + escaped(name) + '"', "expected " + what,
                    "found more");
    }

    const InputFile& file_;
    const PickleObjects& objects_;
    Locate locate_;
    std::unordered_map<std::string, ZipExtent> extents_;
    std::uint64_t dimensions_ = 0;
    std::uint64_t repeated_ = 0;  ///< bytes of tensors that repeat their elements
    std::uint64_t together_ = 0;
};

PytorchFile place_weights(const InputFile& file, const PickleObjects& objects, const std::string& where,
                          Placement::Locate locate) {
    PytorchFile result;
    StateDict weights = find_state_dict(objects, where);
    result.notes = std::move(weights.notes);
    Placement placement(file, objects, std::move(locate));
    for (const StateDict::Entry& entry : weights.entries) placement.place(entry, result);
    file.check_unchanged();
    return result;
}

PytorchFile read_legacy(const InputFile& file) {
    const LegacyFile read = read_legacy_file(file);
    return place_weights(file, read.objects, read.where,
                         [&read](const std::string& key) { return read.storages.at(key); });
}

PytorchFile read_archive(const InputFile& file) {
    const ZipArchive archive(file);
    const std::string root = archive_root(archive, file);
    require_known_version(archive, root);
    require_little_endian(archive, root);
    const std::string name = root + std::string(pickle_name);
    const std::string where = archive.place(name);
    const auto member_name = [&root](std::string_view key) { return root + "data/" + std::string(key); };
    const PickleObjects objects = read_pickle(
        archive.read(name, largest_pickle), where, [&](std::string_view key) -> std::optional<std::uint64_t> {
            const ZipMember* member = archive.find(member_name(key));
            return member == nullptr ? std::nullopt : std::optional(member->bytes);
        });
    return place_weights(file, objects, where,
                         [&](const std::string& key) { return archive.locate(member_name(key)); });
}

}  // namespace

PytorchFile read_pytorch_file(const InputFile& file) {
    try {
        std::string first(static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), 32)), '\0');
        file.read(0, first.data(), first.size());
        return is_legacy_pytorch(first) ? read_legacy(file) : read_archive(file);
    } catch (...) {
        throw current_error(shown(file.path()));
    }
}

}  // namespace headscope::checkpoint

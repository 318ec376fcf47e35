// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/pytorch/python_objects.h"

#include "core/base/error.h"
#include "core/checkpoint/pytorch/pickle_reader.h"
#include "core/checkpoint/pytorch/zip_archive.h"

namespace headscope::checkpoint {
namespace {

/// torch.serialization's magic number as a pickle, and how many pickles stand before the data's: it, the format's
/// version, and what the machine was.
constexpr std::string_view kOldBegin{"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e", 15};
constexpr int kPicklesBefore = 3;
constexpr std::string_view kArchive = "PK\x03\x04", kMember = "/data.pkl";

std::optional<std::uint64_t> no_storage(std::string_view) {
    return std::nullopt;
}

PickleObjects read_archive(const InputFile& file) {
    const ZipArchive archive(file);
    for (const auto& [name, member] : archive.members()) {
        if (name.ends_with(kMember))
            return read_pickle(archive.read(name, largest_pickle), archive.place(name), no_storage);
    }
    throw Error(ErrorCode::unsupported, escaped(file.path().string()),
                "expected an archive as torch.save writes it, with NAME/data.pkl", "found another zip archive");
}

}  // namespace

PickleObjects read_python_objects(const InputFile& file) {
    const std::string where = escaped(file.path().string());
    std::string begin(std::min<std::uint64_t>(file.size(), kOldBegin.size()), '\0');
    file.read(0, begin.data(), begin.size());
    if (begin.starts_with(kArchive)) return read_archive(file);
    std::string bytes = file.read_all(largest_pickle);
    if (begin != kOldBegin) return read_pickle(std::move(bytes), where, no_storage);
    for (int before = 0; before < kPicklesBefore; ++before) {
        std::size_t behind = 0;
        read_pickle(bytes, where, no_storage, &behind);
        bytes.erase(0, behind);
    }
    std::size_t behind = 0;
    return read_pickle(std::move(bytes), where, no_storage, &behind);
}

}  // namespace headscope::checkpoint

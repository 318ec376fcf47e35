// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/pytorch/python_objects.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/checkpoint/pytorch/legacy_file.h"
#include "core/checkpoint/pytorch/pickle_reader.h"
#include "core/checkpoint/pytorch/zip_archive.h"

namespace headscope::checkpoint {
namespace {

constexpr std::string_view kArchive = "PK\x03\x04", kMember = "/data.pkl";

std::optional<std::uint64_t> no_storage(std::string_view) {
    return std::nullopt;
}

PickleObjects objects_of_archive(const InputFile& file) {
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
    std::string begin(std::min<std::uint64_t>(file.size(), 32), '\0');
    file.read(0, begin.data(), begin.size());
    if (begin.starts_with(kArchive)) return objects_of_archive(file);
    if (!is_legacy_pytorch(begin)) return read_pickle(file.read_all(largest_pickle), where, no_storage);
    LegacyFile read = read_legacy_file(file);
    if (!read.storages.empty()) throw Error(ErrorCode::format, read.where, "expected plain data", "found tensors");
    return std::move(read.objects);
}

}  // namespace headscope::checkpoint

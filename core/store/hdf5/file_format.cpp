// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/hdf5/file_format.h"

#include <array>
#include <string_view>

#include "core/base/io/input_file.h"
#include "core/base/process/os_error.h"
#include "core/store/hdf5/hdf5.h"
#include "core/store/hdf5/hdf5_lock.h"

namespace headscope::store {

bool looks_like_hdf5(const std::filesystem::path& path) {
    if (!ends_at_regular_file(path)) return false;
    constexpr std::uint64_t largest_user_block = std::uint64_t{1} << 20U;
    const InputFile file(path);
    std::array<char, 8> begin{};
    for (std::uint64_t at = 0; at <= largest_user_block; at = at == 0 ? 512 : 2 * at) {
        if (file.size() < at + begin.size()) return false;
        file.read(at, begin.data(), begin.size());
        if (std::string_view(begin.data(), begin.size()) == "\x89HDF\r\n\x1a\n") return true;
    }
    return false;
}

std::string hdf5_format(const std::filesystem::path& path) {
    const std::string where = shown(path);
    const InputFile source(path, "HDF5 file");  // refuses what is no regular file
    const Hdf5Lock lock;
    hdf5::prepare();
    const hdf5::Handle file = hdf5::open_file(path, where);
    const hdf5::Handle root = hdf5::open_group(file, "/", where);
    if (H5Aexists(root, "format") <= 0) return "";
    return escaped(hdf5::read_text_attribute(root, "format", where));
}

}  // namespace headscope::store

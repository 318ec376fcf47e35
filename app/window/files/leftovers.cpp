// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/files/leftovers.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

namespace headscope::app {
namespace fs = std::filesystem;
namespace {

bool is_process(const std::string& text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

/// Which of these files some process of this user has open.
std::set<fs::path> open_files(const std::vector<fs::path>& files) {
    std::set<fs::path> open;
    std::error_code error, ignored;
    for (fs::directory_iterator process("/proc", error), end; !error && process != end; process.increment(error)) {
        if (!is_process(process->path().filename().string())) continue;
        std::error_code refused;  // another user's
        for (fs::directory_iterator file(process->path() / "fd", refused), last; !refused && file != last;
             file.increment(refused)) {
            const fs::path target = fs::read_symlink(file->path(), ignored);
            if (std::find(files.begin(), files.end(), target) != files.end()) open.insert(target);
        }
    }
    return open;
}

}  // namespace

std::vector<fs::path> find_leftovers(const fs::path& folder) {
    std::vector<fs::path> found;
    std::error_code error;
    const fs::path real = fs::canonical(folder, error);
    if (error) return {};
    for (fs::directory_iterator entry(real, error), end; !error && entry != end; entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        std::error_code ignored;
        if (name.find(".headscope.h5") == std::string::npos || !name.ends_with(".partial")) continue;
        if (entry->symlink_status(ignored).type() == fs::file_type::regular) found.push_back(entry->path());
    }
    const std::set<fs::path> open = found.empty() ? std::set<fs::path>() : open_files(found);
    std::erase_if(found, [&](const fs::path& path) {
        std::error_code failed;
        if (open.contains(path)) return true;
        if (fs::file_size(path, failed) != 0 || failed) return false;
        return fs::remove(path, failed);
    });
    std::sort(found.begin(), found.end());
    for (fs::path& path : found) path = folder / path.filename();
    return found;
}

}  // namespace headscope::app

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/run_folder.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <vector>

#include "core/base/io/input_file.h"

namespace headscope::training {

namespace fs = std::filesystem;

bool RunFolder::exists() const {
    return ends_at_regular_file(job());
}

bool RunFolder::never_began() const {
    std::error_code error;
    bool journal = false;
    for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename().string();
        const fs::file_status status = at->symlink_status(error);
        if (error || !fs::is_regular_file(status)) return false;
        if (name == kJournalName)
            journal = at->file_size(error) <= kJournalHeaderBytes;
        else if (!name.starts_with("job.toml.") || !name.ends_with(".partial"))
            return false;
        if (error) return false;
    }
    return !error && journal;
}

void RunFolder::remove_partials() const {
    std::error_code error;
    std::vector<fs::path> found;
    for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename().string();
        const bool ours = name.starts_with("job.toml.") || name.starts_with("run.h5.");
        if (ours && name.ends_with(".partial")) found.push_back(at->path());
    }
    for (const fs::path& one : found) fs::remove(one, error);
}

std::string snapshot_name(std::int64_t step) {
    std::array<char, 32> buffer{};
    std::snprintf(buffer.data(), buffer.size(), "step-%06lld", static_cast<long long>(step));
    return buffer.data();
}

std::int64_t snapshot_step(const std::string& name) {
    constexpr std::string_view prefix = "step-";
    if (!name.starts_with(prefix)) return -1;
    std::int64_t step = -1;
    const char* end = name.data() + name.size();
    const auto [at, error] = std::from_chars(name.data() + prefix.size(), end, step);
    return error == std::errc() && at == end && step >= 0 && snapshot_name(step) == name ? step : -1;
}

}  // namespace headscope::training

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/fingerprint.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <utility>

#include "core/base/io/output_file.h"
#include "core/base/io/sha256.h"
#include "core/base/io/uncached_reads.h"
#include "core/base/machine/processors.h"
#include "core/base/process/in_threads.h"
#include "core/base/process/machine.h"
#include "core/checkpoint/checkpoint.h"

namespace headscope::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t worth_caching = 1U << 20U;  // less is hashed faster than it is looked up
constexpr auto settled = std::chrono::seconds(3);   // coarser than any file system's clock
constexpr int most_hashing_threads = 4;             // hash as fast as disks read

/// One small text file for each weight file: its stamp, its path, its hash, a line each.
std::string entry_text(const InputFile& file, const fs::path& real, const std::string& hash) {
    return "headscope-sha256 1\n" + file.stamp() + "\n" + real.native() + "\n" + hash + "\n";
}

std::optional<std::string> remembered(const fs::path& entry, const InputFile& file, const fs::path& real) {
    try {
        const std::string text = read_small_file(entry, 16384);
        if (text.size() < 66) return std::nullopt;
        std::string hash = text.substr(text.size() - 65, 64);
        if (is_sha256_hex(hash) && text == entry_text(file, real, hash)) return hash;
    } catch (const Error&) {
        // No entry, or none that can be used.
    }
    return std::nullopt;
}

void remember(const fs::path& entry, const std::string& text) {
    try {
        write_whole_file(entry, text, "output");
    } catch (const Error&) {
        // A cache that cannot be written costs time only.
    }
}

/// A file written just now may be written again without its time changing.
bool just_written(const fs::path& path) {
    std::error_code error;
    const auto written = fs::last_write_time(path, error);
    return error || fs::file_time_type::clock::now() - written < settled;
}

}  // namespace

std::optional<fs::path> cache_folder() {
    const char* cache = std::getenv("XDG_CACHE_HOME");
    fs::path base;
    if (cache != nullptr && fs::path(cache).is_absolute()) {
        base = cache;
    } else {
        const char* home = std::getenv("HOME");
        if (home == nullptr || !fs::path(home).is_absolute()) return std::nullopt;
        base = fs::path(home) / ".cache";
    }
    const fs::path folder = base / "headscope";
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) return std::nullopt;
    return folder;
}

std::string cached_sha256(const InputFile& file, const Cancellation& cancellation) {
    std::error_code error;
    const fs::path real = fs::canonical(file.path(), error);
    const auto folder = error || file.size() < worth_caching ? std::nullopt : cache_folder();
    if (!folder) return sha256_hex(file, cancellation);
    const fs::path entry = *folder / ("sha256-" + sha256_hex(real.native()).substr(0, 32));
    file.check_unchanged();
    if (auto hash = remembered(entry, file, real)) return *hash;
    std::string hash = sha256_hex(file, cancellation);
    if (!just_written(real)) remember(entry, entry_text(file, real, hash));
    return hash;
}

std::string fingerprint(const std::vector<InputFile>& files, const std::vector<const InputFile*>& more,
                        const Cancellation& cancellation, int threads) {
    std::vector<const InputFile*> order;
    for (const InputFile& file : files) order.push_back(&file);
    std::sort(order.begin(), order.end(), [](const InputFile* a, const InputFile* b) {
        return a->path().filename().native() < b->path().filename().native();
    });
    order.insert(order.end(), more.begin(), more.end());
    double bytes = 0;
    for (const InputFile* file : order) bytes += static_cast<double>(file->size());
    const double memory = headscope::machine_memory();
    const bool uncached = memory > 0 && bytes > memory;
    std::vector<std::string> hashes(order.size());
    std::vector<std::function<void()>> work;
    for (std::size_t i = 0; i < order.size(); ++i) {
        work.emplace_back([&, i] {
            const UncachedReads scope(uncached);
            hashes[i] = cached_sha256(*order[i], cancellation);
        });
    }
    if (threads == 0) threads = std::clamp(usable_processors() / 2, 1, most_hashing_threads);
    if (threads > 1 && work.size() > 1) {
        in_threads(std::min<std::int64_t>(threads, std::ssize(work)), work);
    } else {
        for (const auto& one : work) one();
    }
    std::string lines;
    for (const std::string& hash : hashes) lines += hash + "\n";
    return sha256_hex(lines);
}

FingerprintAhead::FingerprintAhead(std::shared_ptr<const Checkpoint> file)
    : ahead_([file = std::move(file)](std::int64_t, const Cancellation& stop) { return file->fingerprint(stop); }) {
    ahead_.start(0);
}

}  // namespace headscope::checkpoint

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/io/input_file.h"
#include "core/base/process/read_ahead.h"
#include "core/base/progress.h"

namespace headscope::checkpoint {

class Checkpoint;

/// SHA-256 (hex) over one line per file, in order of file name: the file's SHA-256 in hex and a line feed. `more` come
/// behind these as they are. `threads` hash files at once; 0: as many as leave half of the processors to others, at
/// most 4.
std::string fingerprint(const std::vector<InputFile>& files, const std::vector<const InputFile*>& more,
                        const Cancellation& cancellation, int threads = 0);

/// A file's SHA-256, from the cache if the file there was the same: by real path, size, modification and change time.
/// A cache that cannot be read or written is done without.
std::string cached_sha256(const InputFile& file, const Cancellation& cancellation);

/// $XDG_CACHE_HOME/headscope or ~/.cache/headscope, made if need be; empty where neither can be used.
std::optional<std::filesystem::path> cache_folder();

/// Checkpoint::fingerprint() on a thread of its own while the caller reads the weights. Threads: one owner.
class FingerprintAhead {
public:
    explicit FingerprintAhead(std::shared_ptr<const Checkpoint> file);
    /// Waits for the fingerprint. Errors: those of Checkpoint::fingerprint(); Stopped.
    std::string get(const Cancellation& cancellation) { return ahead_.take(0, &cancellation); }

private:
    ReadAhead<std::string> ahead_;
};

}  // namespace headscope::checkpoint

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A task's items, read from files with the hub data set's own columns, as the texts that lm-eval asks. Everything is
// read and checked before the first pass of a model. Threads: any. Errors: Error io for a file that is not there (the
// path looked for), usage for an empty one or for examples that are missing, format with FILE:LINE for what is wrong in
// it.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/evaluation/harness/harness_tasks.h"

namespace headscope::evaluation {

/// Context and continuation as texts. The delimiter is the continuation's first character.
struct TextPair {
    std::string context, continuation;
    bool operator==(const TextPair&) const = default;
};

struct HarnessItem {
    std::string place;                     ///< "FILE:LINE", for errors
    std::vector<TextPair> requests;        ///< one an option; one of lambada; of a page {"", the detokenized page}
    std::vector<std::int64_t> characters;  ///< of each option without its delimiter, in code points (acc_norm)
    std::int64_t gold = 0;                 ///< the right option
    std::int64_t words = 0, bytes = 0;     ///< of a page as it was
    std::string prompt;                    ///< said: what is asked, without examples
    std::vector<std::string> answers;      ///< said: right if it contains any of them
    std::vector<std::string> classes{};    ///< of LongBench's classifications
    std::string subset{};                  ///< part of the task's items; empty: there are no parts
};

struct ItemsOptions {
    std::int64_t shots = 0;    ///< examples before each item, drawn as lm-eval draws them
    bool first_shots = false;  ///< the first ones of train instead
    std::uint64_t seed = 1234;
    std::int64_t limit = 0;  ///< use the first `limit` items; 0: all
};

struct DataFile {
    std::filesystem::path path;
    std::string sha256;
};

struct HarnessItems {
    const HarnessTask* task = nullptr;
    std::vector<HarnessItem> items;
    std::vector<DataFile> files;  ///< the split's, and train's where examples come from it
};

/// File of a task's split in `folder`. Throws an error that lists the names tried.
std::filesystem::path find_data_file(const std::filesystem::path& folder, const HarnessTask& task,
                                     const std::string& split);

HarnessItems read_items(const std::filesystem::path& folder, const HarnessTask& task, const ItemsOptions& options,
                        const Cancellation* cancellation = nullptr);

}  // namespace headscope::evaluation

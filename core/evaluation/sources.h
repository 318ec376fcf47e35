// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/data/data_set.h"
#include "core/evaluation/documents.h"
#include "core/training/job/job.h"

namespace headscope::evaluation {

/// Files that an entry names: text files, folders, patterns, or a ready corpus. Any other entry throws Error usage at
/// the place `key`.
std::vector<data::SourceFile> source_files(const std::string& entry, const std::string& key);

/// "NAME=FILE", or FILE, whose name is its stem; of a folder, a pattern or a corpus the name is the entry's last part.
struct NamedData {
    std::string name, data;
};
NamedData named_data(const std::string& entry);

/// A text for each entry: a file, folder, pattern or ready corpus, with or without a name, to be scored with a model's
/// tokenizer. Error usage for an entry that is none of them, or two texts of one name.
std::vector<NamedText> texts_of(const std::vector<std::string>& data,
                                const std::shared_ptr<const tokenizer::Tokenizer>& tokenizer,
                                const Cancellation& cancellation);

/// The held-out part of what a job trains on; empty for generators and for jobs that hold nothing out. Tokens are taken
/// from the token file that training made, or made again. `words`: of a model with a hash embedding.
std::optional<NamedText> held_out_part(const training::JobFile& job, const std::filesystem::path& run,
                                       Progress& progress, const Cancellation& cancellation,
                                       const data::HashedWords* words = nullptr);

/// The fixed token of a job as the checkpoint that it made has it: with its id, by the tokenizer beside the weights
/// where the job says none. Error usage where there is none; limit for one beyond the model's vocabulary.
data::FixedToken trained_token(data::FixedToken token, const std::filesystem::path& checkpoint,
                               std::int64_t vocabulary);

}  // namespace headscope::evaluation

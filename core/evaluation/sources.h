// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/data/data_set.h"
#include "core/evaluation/documents.h"
#include "core/training/job/job.h"

namespace headscope::evaluation {

/// What files an entry names: text files, folders, patterns, or a ready corpus. Error usage, which calls it `key`, for
/// one that is none of them.
std::vector<data::SourceFile> source_files(const std::string& entry, const std::string& key);

/// Text files, folders, patterns and ready corpora by name, to be scored with a model's tokenizer. Error usage for an
/// entry that is none of them.
std::unique_ptr<Documents> documents_of(const std::vector<std::string>& data,
                                        std::shared_ptr<const tokenizer::Tokenizer> tokenizer);

/// The held-out part of what a job trains on; null for generators and for jobs that hold nothing out. Tokens are taken
/// from the token file that training made, or made again. `words`: of a model with a hash embedding.
std::unique_ptr<Documents> held_out_part(const training::JobFile& job, const std::filesystem::path& run,
                                         Progress& progress, const Cancellation& cancellation,
                                         const data::HashedWords* words = nullptr);

/// The fixed token of a job as the checkpoint that it made has it: with its id, by the tokenizer beside the weights
/// where the job says none. Error usage where there is none; limit for one beyond the model's vocabulary.
data::FixedToken trained_token(data::FixedToken token, const std::filesystem::path& checkpoint,
                               std::int64_t vocabulary);

}  // namespace headscope::evaluation

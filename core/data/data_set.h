// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A job's data, ready to be read: settings -> tokenizer + token file (made, or found in the cache) or generator.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/data/batch/batch_source.h"
#include "core/data/batch/corruption.h"
#include "core/data/settings.h"

namespace headscope::tokenizer {
class Tokenizer;
class WordTokenizer;
}  // namespace headscope::tokenizer

namespace headscope::data {

class TokenFile;

/// A file that belongs to a tokenizer, for a checkpoint folder: "tokenizer.json" and what was beside it.
struct TokenizerFile {
    std::string name;
    std::string content;
};

/// For people, events and forms.
struct DataSummary {
    std::string name;                  ///< "3 files", "kjv", "generator markov"
    std::int64_t sources = 0;          ///< files
    std::int64_t documents = 0;        ///< of both splits
    std::int64_t training_tokens = 0;  ///< 0: endless
    std::int64_t validation_tokens = 0;
    std::filesystem::path token_file;  ///< empty for a generator
    bool reused = false;               ///< the token file was there
    /// Markov text: exact entropies in nats of a token when the 0, 1, 2, ... tokens before it are known, up to the
    /// order. No model that sees fewer tokens can have a smaller expected loss.
    std::vector<double> entropies;
};

/// Input of a model with a hash embedding, instead of a tokenizer that the settings name.
struct HashedWords {
    std::shared_ptr<const tokenizer::WordTokenizer> tokenizer;
    std::vector<TokenizerFile> files;  ///< ngrams.json of lsh; of pieces ("words": "tokenizer") their tokenizer's
};

/// The most frequent n-grams of all words that a job is trained on (core/tokenizer/hashed/ngrams.h): at most `count`.
/// In bounded memory, the same ones each time. `pieces`: what cuts text in place of words ("words": "tokenizer").
std::vector<std::string> frequent_ngrams(const DataSettings& settings, const DataPlaces& places, std::size_t count,
                                         Progress& progress, const Cancellation& cancellation,
                                         const tokenizer::Tokenizer* pieces = nullptr);

class DataSet {
public:
    /// Reads the sources, trains the tokenizer if asked, writes or finds the token file. In bounded memory, with
    /// progress; Stopped when cancelled, leaving nothing half done. `words`: of a model with a hash embedding.
    /// Error: usage for settings that contradict each other, nothing to read, too short a text for one sequence; io,
    /// format for files; what is not installed by the name of its package.
    static std::shared_ptr<const DataSet> prepare(const DataSettings& settings, const DataPlaces& places,
                                                  Progress& progress, const Cancellation& cancellation,
                                                  const HashedWords* words = nullptr);
    virtual ~DataSet();

    const tokenizer::Tokenizer& tokenizer() const { return *tokenizer_; }
    std::shared_ptr<const tokenizer::Tokenizer> shared_tokenizer() const { return tokenizer_; }
    /// Files that a snapshot's folder needs next to its weights so that analyze, generate and transformers read text.
    const std::vector<TokenizerFile>& tokenizer_files() const { return tokenizer_files_; }
    /// Number of ids: the least vocab_size that a model of these data may have.
    std::int64_t vocabulary() const { return vocabulary_; }
    /// The id that ends each document, or what a decoder says of a translation; -1: none does.
    std::int64_t separator() const { return separator_; }
    /// For objectives other than next_token: the tokens besides those of text. `first` also starts a translation's
    /// decoder: <s> or [CLS] of its tokenizer, or <pad> without either.
    const SpecialIds& special() const { return special_; }
    /// Names the data and the order they come in (but for the seed): SHA-256. A resumed job must find the same one.
    const std::string& hash() const { return hash_; }
    const DataSummary& summary() const { return summary_; }

    /// The sequences of one part. Null for validation when none is held out. The source holds what it needs. What is
    /// held out comes in the same order whatever the seed, so that runs of several seeds are judged by the same.
    virtual std::unique_ptr<const BatchSource> source(Split split, std::uint64_t seed) const = 0;

protected:
    DataSet() = default;
    std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
    std::vector<TokenizerFile> tokenizer_files_;
    std::int64_t vocabulary_ = 0;
    std::int64_t separator_ = -1;
    SpecialIds special_{};
    std::string hash_;
    DataSummary summary_;
};

}  // namespace headscope::data

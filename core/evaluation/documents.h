// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Text to score, as tokens and with what word- and byte-normalised measures count. Read again for every model and
// length, in bounded memory. Threads: one at a time. Errors: those of the files; Stopped within a CancellationScope.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/source/source_files.h"
#include "core/data/token_file.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::evaluation {

/// Bytes of UTF-8, and words as lm-eval-harness counts them: len(re.split(r"\s+", text)), which is the runs of white
/// space and one. Text comes in pieces of whole characters.
class TextCounter {
public:
    void add(std::string_view text);
    std::int64_t bytes() const { return bytes_; }
    std::int64_t words() const { return runs_ + 1; }

private:
    std::int64_t bytes_ = 0, runs_ = 0;
    bool in_space_ = false;
};

class DocumentSink {
public:
    virtual ~DocumentSink() = default;
    /// `before`: the token that stood before the document in training, where that is known.
    virtual void begin(std::optional<std::int64_t> before) = 0;
    /// Token ids, or word numbers of a hash embedding (core/data/token_code.h).
    virtual void tokens(std::span<const std::int32_t> ids) = 0;
    virtual void end(std::int64_t words, std::int64_t bytes) = 0;
    virtual std::int64_t wanted() const = 0;  ///< tokens that are still wanted; at 0 end() comes nevertheless
    bool enough() const { return wanted() <= 0; }
};

class Documents {
public:
    virtual ~Documents() = default;
    /// `progress`: the share that is read, 0 to 1.
    virtual void read(DocumentSink& sink, const std::function<void(double done)>& progress) const = 0;
    virtual std::string name() const = 0;                          ///< "3 files", "held-out part of kjv"
    virtual std::vector<std::filesystem::path> files() const = 0;  ///< no output may replace one
};

/// A text by the name that its results have.
struct NamedText {
    std::string name;
    std::string sha256;  ///< of what it is made of
    std::unique_ptr<Documents> documents;
};

/// Files as they are: each text file is a document, each line of JSON, each book of the bible.
std::unique_ptr<Documents> file_documents(std::vector<data::SourceFile> files,
                                          std::shared_ptr<const tokenizer::Tokenizer> tokenizer, std::string name);

/// Held-out text of a training job: one running text, preceded by the token before it.
std::unique_ptr<Documents> held_out_documents(std::shared_ptr<const data::TokenFile> tokens,
                                              std::shared_ptr<const tokenizer::Tokenizer> tokenizer, std::string name);

}  // namespace headscope::evaluation

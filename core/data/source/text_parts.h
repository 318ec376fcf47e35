// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Documents, part by part, in bounded memory.
//
// A document beyond `largest_part` bytes comes in parts that are tokenised one by one. They are cut before a space that
// stands between a letter or digit and a letter, where no tokenizer in use has a token across (and byte-level ones
// have the same tokens as without the cut); where there is none, before another space or line end; in the worst
// case between two characters.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/base/io/input_file.h"
#include "core/base/progress.h"
#include "core/data/source/source_files.h"

namespace headscope::data {

constexpr std::size_t largest_part = std::size_t{1} << 20U;

/// Takes documents; parts are valid UTF-8, none is empty.
class PartSink {
public:
    virtual ~PartSink() = default;
    virtual void begin_document() = 0;
    virtual void part(std::string_view text) = 0;
    virtual void end_document() = 0;
};

/// Reads all of a source, without a byte order mark at a file's start. `bytes_read` receives the position in the file.
/// Error: format with file and byte (or line and column) for invalid UTF-8 or JSON; mismatch if the file changes
/// meanwhile. `column`: SourceFile's.
void read_parts(const InputFile& file, SourceKind kind, PartSink& sink,
                const std::function<void(std::uint64_t bytes_read)>& progress, const std::string& column = "text");

/// A place to cut the text, in (least, text.size()), as far back as the rules above allow.
std::size_t cut_place(std::string_view text, std::size_t least);

/// Hands on a document's text in parts, as it comes.
class PartCutter {
public:
    explicit PartCutter(PartSink& sink) : sink_(sink) {}
    /// Any bytes: `refuse` receives the place of invalid UTF-8 in the document.
    void add(std::string_view bytes, const std::function<void(std::uint64_t byte)>& refuse);
    void finish(const std::function<void(std::uint64_t byte)>& refuse);

private:
    void hand_on(std::size_t size, const std::function<void(std::uint64_t byte)>& refuse);

    PartSink& sink_;
    std::string waiting_;
    std::uint64_t handed_on_ = 0;
};

/// As long as the longest text that is analysed; reading one takes some five times its length.
constexpr std::size_t longest_line = std::size_t{64} << 20U;

/// The lines of a file that are not blank, with their numbers from 1 on; they end at \n, a byte order mark is left out.
/// Error limit for one beyond 64 MiB.
void read_lines(const InputFile& file, const std::function<void(std::string_view line, std::uint64_t number)>& take,
                const std::function<void(std::uint64_t bytes_read)>& progress);

// The kinds.
void read_json_texts(const InputFile& file, SourceKind kind, PartSink& sink,
                     const std::function<void(std::uint64_t bytes_read)>& progress, const std::string& column);
void read_bible(const InputFile& file, PartSink& sink);

}  // namespace headscope::data

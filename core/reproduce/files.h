// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Texts and files of replays.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/io/output_file.h"

namespace headscope::reproduce {

/// Seconds of a clock that is never set back.
double now();

/// Seconds of the later steps of a run, from short to long: the first ones warm caches up.
std::vector<double> step_seconds(const std::filesystem::path& run);

/// The end of the last document of a replay's data, whole words of some 6000 characters: training holds out from the
/// end. `data`: files, folders, patterns; empty: the King James Bible. Throws Error.
std::string held_out_passage(const std::vector<std::string>& data);

/// All documents, one behind the other: the last `most` bytes.
std::string whole_text(const std::vector<std::string>& data, std::size_t most);

/// Whole words, at most the last `most` bytes of a text.
std::string last_words(const std::string& text, std::size_t most);

/// A task to tune encoders for: the part of the text that a passage is from. JSON lines with "text" and "label".
struct Passages {
    std::string train, test;
};
/// Cuts the text into passages of 24 words, labelled with the one of `classes` equal parts that they lie in. Every
/// fifth passage is to test with; long texts leave passages out evenly, until at most `most` are left. Throws Error
/// usage for a text of fewer than ten passages a class.
Passages passages_of(std::string_view text, std::int64_t classes, std::int64_t most);

}  // namespace headscope::reproduce

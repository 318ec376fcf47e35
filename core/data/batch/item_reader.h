// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Items of "translation" and "classify" from JSON lines, a JSON array or Parquet. Threads: any.

#include <cstdint>
#include <functional>

#include "core/base/io/input_file.h"
#include "core/data/settings.h"
#include "core/data/source/source_files.h"
#include "core/data/source/text_item.h"

namespace headscope::data {

/// True for the objectives whose data are items.
bool reads_items(const ObjectiveSettings& objective);

/// Calls take for each object's item, in order; `kind` has columns. translation: the strings in objective.source and
/// objective.target ("translation.en" is a member of a member).
/// classify: "label", a class in [0, classes) or, with classes = 1, a number; and the texts in the columns of the first
/// of these that a line has: text (with pair, or with span1_text and span2_text), word with sentence1 and sentence2,
/// sentence1/sentence2, question1/question2, premise/hypothesis, premise with choice1, choice2 and question,
/// question/sentence, sentence, paragraph with question and answer, passage/question: those of GLUE and SuperGLUE.
/// Others are passed over. Error format, FILE:LINE, for anything else.
void read_items(const InputFile& file, SourceKind kind, const ObjectiveSettings& objective,
                const std::function<void(const TextItem&)>& take,
                const std::function<void(std::uint64_t bytes_read)>& progress);

}  // namespace headscope::data

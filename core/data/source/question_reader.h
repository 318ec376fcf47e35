// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Questions of SQuAD 1.1 and 2.0. Threads: any. Errors: Error format with FILE:LINE and the member, limit.

#include <cstdint>
#include <functional>

#include "core/base/io/input_file.h"
#include "core/base/json/json.h"
#include "core/data/source/question.h"
#include "core/data/source/source_files.h"

namespace headscope::data {

using TakeQuestion = std::function<void(Question question)>;

/// The question of a record of the hub (id, question, context, answers {text, answer_start}), or all of the original
/// document (data[].paragraphs[].qas[]), in order. answer_start counts code points; an answer must lie in its context.
void take_questions(const JsonView& record, const TakeQuestion& take);

/// Those of a file of a kind that has_columns().
void read_questions(const InputFile& file, SourceKind kind, const TakeQuestion& take,
                    const std::function<void(std::uint64_t bytes_read)>& progress);

}  // namespace headscope::data

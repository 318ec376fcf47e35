// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Tasks whose answers a model generates, token by token: RULER's (core/data/ruler), made for its tokenizer or read from
// files with lm-eval's or NVIDIA's columns. Threads: the compute thread. Errors: Error, Stopped.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/data/ruler/ruler.h"
#include "core/evaluation/score.h"
#include "core/model/load/generation_settings.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::evaluation {

/// A prompt and its right answers, made or read.
struct AskedItem {
    std::string prompt;
    std::vector<std::string> outputs;
    std::int64_t max_length = 0;
};

struct GeneratedAnswers {
    std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
    std::vector<std::int64_t> end_tokens;        ///< each ends an answer
    model::GenerationSettings settings;          ///< what the model's files do to logits
    std::optional<std::int64_t> prefix;          ///< a text that begins with this token's gets no special ones added
    std::shared_ptr<const data::Essays> essays;  ///< hay of items that are made; null where no task has such
    std::map<std::string, std::vector<AskedItem>> files;  ///< items of tasks that are read and not made
    /// Sees each item that is made.
    std::function<void(const std::string& task, const data::RulerItem& item)> on_item;
};

/// The ids of a prompt, with the special tokens that the tokenizer adds by itself.
std::vector<std::int64_t> prompt_ids(const GeneratedAnswers& said, const std::string& prompt);

/// Makes items of a task as `said`'s tokenizer counts them. Throws limit for a length that is too short.
data::RulerMaker ruler_maker(const GeneratedAnswers& said, const data::RulerTask& task, std::int64_t length,
                             std::uint64_t seed);

struct GeneratedAnswer {
    std::string text;
    bool cut = false;  ///< the prompt lost tokens
};

/// Greedy answer of at most `tokens` tokens. If prompt and answer exceed `most` tokens (0: no limit; of an
/// encoder-decoder the prompt alone), the prompt is truncated on the left. `stops` cut the text, not its tokens: each
/// in turn what those before it left.
GeneratedAnswer generated_answer(model::Model& model, const GeneratedAnswers& said, const std::string& prompt,
                                 std::int64_t tokens, std::int64_t most, const ScoreOptions& options,
                                 const std::vector<std::string>& stops = {});

/// As THUDM/LongBench asks: of a prompt of more than `most` tokens (0: no limit) the first and the last most / 2 are
/// decoded without special tokens, joined and tokenized again; the answer's tokens are not subtracted. End tokens
/// alone end it; `line_ends`: also the last token of a line's end, and none of them is the first token.
GeneratedAnswer whole_answer(model::Model& model, const GeneratedAnswers& said, const std::string& prompt,
                             std::int64_t tokens, std::int64_t most, bool line_ends, const ScoreOptions& options);

/// Mean of the items' scores and its standard error (NaN for one item).
struct AnswerScore {
    std::int64_t items = 0;
    double mean = 0, error = 0;
};
AnswerScore mean_score(const std::vector<double>& scores);

/// Items of `folder`/TASK/test.jsonl: columns input, outputs, gen_prefix, max_length; or NVIDIA's input, outputs,
/// answer_prefix, with `length` for what has none. Throws io for no file, usage for an empty one, format with file and
/// line.
std::vector<AskedItem> read_ruler_items(const std::filesystem::path& folder, const data::RulerTask& task,
                                        std::optional<std::int64_t> length);
std::filesystem::path ruler_items_file(const std::filesystem::path& folder, const std::string& task);

/// An item as a line of such a file.
std::string ruler_item_line(const data::RulerItem& item);

}  // namespace headscope::evaluation

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Tasks of encoders and encoder-decoders: labels of corrupted texts (masked, shuffle_random), classes of texts or
// pairs, translations. Data as training has them (core/data/batch/objective_reader.h, item_reader.h). Threads: the
// compute thread. Errors: Error (usage for a model whose head is another one), Stopped.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/data/source/text_item.h"
#include "core/data/tokenizer_choice.h"
#include "core/evaluation/documents.h"
#include "core/evaluation/harness/answered_item.h"
#include "core/evaluation/score.h"
#include "core/model/generate/beam_search.h"

namespace headscope::evaluation {

/// Items of one file, by the name that their results have.
struct LabelledItems {
    std::string name;
    std::filesystem::path file;
    std::vector<data::TextItem> items;
    std::string text{};    ///< the file's stem; empty: the items are generated
    std::string sha256{};  ///< of the file
};

/// "NAME=FILE", or a file, whose results are called `task`.
LabelledItems labelled_file(const std::string& data, const std::string& task);

/// Tokenizer, items and beam search of one model.
struct LabelledWork {
    data::ChosenTokenizer tokenizer;  ///< with tokenizer_config.json; tokenizer null: the checkpoint has none
    std::vector<LabelledItems> classes, translations;
    /// Translations have at most `length` tokens; cancellation, positions and skipped layers are set.
    model::BeamOptions beams{.tokens = std::numeric_limits<std::int64_t>::max()};
};

/// objective.kind of a task; empty for other tasks.
std::string objective_of(const std::string& task);
/// Refuses a model whose stack or head is not that of the task.
void check_head(const std::string& task, const model::ModelConfig& config);

using OnAnswer = std::function<void(const AnsweredItem&)>;

/// Loss and hits of a text's sequences of `length` tokens, each corrupted by random numbers of `seed` and its number.
/// A rest at the end, shorter than a sequence, is not read; a text that has no more is one sequence. Memory: the
/// tokens of the text, or the first `most_tokens` of them (0: all).
TokenScores score_corrupted(model::Model& model, const std::string& task, const Documents& documents,
                            const LabelledWork& work, std::int64_t length, std::uint64_t seed, std::int64_t most_tokens,
                            const ScoreOptions& options, const Share& progress);

struct NamedValue {
    std::string metric;
    double value = 0, error = 0;  ///< NaN: not known
    std::int64_t count = 0;
    std::int64_t cut = 0;  ///< items that lost tokens to the length
};

/// accuracy, f1 (of class 1 where there are two, else the mean over classes), matthews, loss; of a head of one class
/// spearman and loss (the mean squared error). Texts are cut to `length` tokens as in training.
std::vector<NamedValue> classify(model::Model& model, const LabelledWork& work, const LabelledItems& items,
                                 std::int64_t length, const ScoreOptions& options, const OnAnswer& answer,
                                 const Share& progress);

/// bleu of what beam search says, and loss of the references' tokens with the end token.
std::vector<NamedValue> translate(model::Model& model, const LabelledWork& work, const LabelledItems& items,
                                  std::int64_t length, const ScoreOptions& options, const OnAnswer& answer,
                                  const Share& progress);

}  // namespace headscope::evaluation

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/labelled.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>
#include <c10/core/InferenceMode.h>

#include "core/base/class_names.h"
#include "core/base/error.h"
#include "core/data/batch/item_source.h"
#include "core/data/batch/objective_reader.h"
#include "core/data/batch/truncation.h"
#include "core/evaluation/generated_answers.h"
#include "core/evaluation/metrics/bleu.h"
#include "core/evaluation/metrics/classification.h"
#include "core/evaluation/sources.h"
#include "core/model/heads/text_rows.h"
#include "core/model/objectives/objective.h"
#include "core/training/trainer/learner.h"

namespace headscope::evaluation {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// The first numbers of all documents, one behind the other.
class Gathered final : public DocumentSink {
public:
    /// `most`: 0 for all.
    explicit Gathered(std::int64_t most) : most_(most > 0 ? most : std::numeric_limits<std::int64_t>::max()) {}
    void begin(std::optional<std::int64_t> /*before*/) override {}
    void tokens(std::span<const std::int32_t> ids) override {
        const auto count = static_cast<std::size_t>(std::min(wanted(), std::ssize(ids)));
        numbers.insert(numbers.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count));
    }
    void end(std::int64_t /*words*/, std::int64_t /*bytes*/) override {}
    std::int64_t wanted() const override { return most_ - std::ssize(numbers); }

    std::vector<std::int32_t> numbers;

private:
    std::int64_t most_;
};

data::DataSettings settings_of(const std::string& task, std::int64_t length, std::int64_t classes) {
    data::DataSettings settings;
    settings.objective.kind = objective_of(task);
    settings.objective.classes = classes;
    settings.sequence_length = length;
    return settings;
}

std::int64_t batch_size(const ScoreOptions& options, std::int64_t length) {
    return std::max<std::int64_t>(1, options.batch_tokens / length);
}

/// Calls work(first, count) for batches of `all` items.
void each_batch(std::int64_t all, std::int64_t step, const ScoreOptions& options, const Share& progress,
                const std::function<void(std::int64_t first, std::int64_t count)>& work) {
    for (std::int64_t first = 0; first < all; first += step) {
        if (options.cancellation) options.cancellation->check();
        const std::int64_t count = std::min(step, all - first);
        work(first, count);
        if (progress) progress(static_cast<double>(first + count) / static_cast<double>(all));
    }
}

void check_number(double value, const std::string& what) {
    if (std::isfinite(value)) return;
    throw Error(ErrorCode::limit, what, "expected finite logits of the model",
                "found others: its weights are not finite, or too large for the numbers' type");
}

std::string asked_text(const data::TextItem& item) {
    return item.has_other ? item.text + "\n" + item.other : item.text;
}

/// Reports an item with options: each class's log-probability. `names`: of all classes.
void hand_out_class(const LabelledItems& items, std::int64_t number, std::int64_t length, const double* logs,
                    const std::vector<std::string>& names, std::int64_t chosen, const OnAnswer& answer) {
    if (!answer) return;
    const std::int64_t classes = std::ssize(names);
    const data::TextItem& one = items.items[static_cast<std::size_t>(number)];
    HarnessItem item;
    ItemScore score;
    item.gold = std::llround(one.label);
    for (std::int64_t c = 0; c < classes; ++c) {
        item.requests.push_back({asked_text(one), names[static_cast<std::size_t>(c)]});
        score.requests.push_back({logs[c], c == chosen, {}});
    }
    score.chosen = chosen;
    score.right = chosen == item.gold;
    score.metrics = {{"accuracy", score.right ? 1.0 : 0.0}};
    const std::vector<HarnessRequest> requests(static_cast<std::size_t>(classes));
    answer({items.name, HarnessKind::choices, length, 0, number, item, score, requests, names});
}

void hand_out_said(const LabelledItems& items, std::int64_t number, std::int64_t length, const std::string& prompt,
                   const std::string& said, const std::string& wanted, const OnAnswer& answer) {
    if (!answer) return;
    HarnessItem item;
    ItemScore score;
    item.prompt = prompt;
    item.answers = {wanted};
    score.generated = said;
    score.right = said == wanted;
    answer({items.name, HarnessKind::said, length, 0, number, item, score, {}});
}

std::string short_number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}

}  // namespace

LabelledItems labelled_file(const std::string& data, const std::string& task) {
    const NamedData named = named_data(data);
    const std::filesystem::path file = named.data;
    return {named.data == data ? task : named.name, file, {}, file.stem().string()};
}

std::string objective_of(const std::string& task) {
    for (const char* kind : {"masked", "shuffle_random", "classify", "translation"})
        if (task == kind) return kind;
    return "";
}

void check_head(const std::string& task, const model::ModelConfig& config) {
    // Any number of classes, which is the model's to say.
    const bool texts = config.head == model::HeadKind::sequence_classes;
    model::make_objective(objective_of(task), texts ? config.classes : 2)->check(config);
}

TokenScores score_corrupted(model::Model& model, const std::string& task, const Documents& documents,
                            const LabelledWork& work, std::int64_t length, std::uint64_t seed, std::int64_t most_tokens,
                            const ScoreOptions& options, const Share& progress) {
    const std::int64_t width = data::TokenCode(work.tokenizer.tokenizer).width();
    Gathered text(most_tokens * width);
    documents.read(text, {});
    const std::int64_t tokens = std::ssize(text.numbers) / width;
    if (tokens == 0)
        throw Error(ErrorCode::usage, documents.name(), "expected at least one token of text", "found none");
    const data::ObjectiveReader reader(settings_of(task, std::min(length, tokens + 2), 2), work.tokenizer);
    const std::int64_t row = reader.row_tokens() * width, sequences = tokens / reader.row_tokens();
    const auto source = reader.source(data::TextRows{sequences,
                                                     [&](std::int64_t index) {
                                                         const auto at = text.numbers.begin() + index * row;
                                                         return std::vector<std::int64_t>(at, at + row);
                                                     }},
                                      seed);
    TokenScores scores;
    GroupedPasses passes(model, options, progress);
    each_batch(
        sequences, batch_size(options, length), options, [&](double share) { passes.report(share); },
        [&](std::int64_t first, std::int64_t count) { add_label_scores(passes, source->read(first, count), scores); });
    passes.finish();
    return scores;
}

std::vector<NamedValue> classify(model::Model& model, const LabelledWork& work, const LabelledItems& items,
                                 std::int64_t length, const ScoreOptions& options, const OnAnswer& answer,
                                 const Share& progress) {
    const c10::InferenceMode inference;
    const std::int64_t classes = model.config().classes;
    const std::vector<std::string> names = all_class_names(model.config().original_json, classes);
    const data::ObjectiveReader reader(settings_of("classify", length, classes), work.tokenizer);
    const auto source = reader.source(
        data::made_items([&](std::int64_t i) { return items.items[static_cast<std::size_t>(i)]; }, reader.code()));
    std::vector<std::int64_t> said, truth;
    std::vector<double> numbers, wanted, losses, hits;
    const std::int64_t all = std::ssize(items.items);
    std::int64_t cut = 0;
    // logits [count, classes] float32
    const auto take = [&](std::int64_t first, std::int64_t count, const at::Tensor& logits) {
        const at::Tensor logs = classes == 1 ? logits.to(at::kDouble) : at::log_softmax(logits, 1, at::kDouble);
        const double* row = logs.const_data_ptr<double>();
        for (std::int64_t i = first; i < first + count; ++i, row += classes) {
            const double label = items.items[static_cast<std::size_t>(i)].label;
            if (classes == 1) {
                numbers.push_back(row[0]);
                wanted.push_back(label);
                losses.push_back((row[0] - label) * (row[0] - label));
                hand_out_said(items, i, length, asked_text(items.items[static_cast<std::size_t>(i)]),
                              short_number(row[0]), short_number(label), answer);
                continue;
            }
            said.push_back(std::max_element(row, row + classes) - row);
            truth.push_back(std::llround(label));
            losses.push_back(-row[truth.back()]);
            hits.push_back(said.back() == truth.back() ? 1 : 0);
            hand_out_class(items, i, length, row, names, said.back(), answer);
        }
    };
    GroupedPasses passes(model, options, progress);
    each_batch(
        all, batch_size(options, length), options, [&](double share) { passes.report(share); },
        [&](std::int64_t first, std::int64_t count) {
            const data::DataBatch batch = source->read(first, count);
            cut += batch.cut;
            passes.add(training::batch_of(batch, model.config()),
                       [&model, &take, first, count](const at::Tensor& hidden, const model::Batch& read) {
                           take(first, count, model::text_logits(model, hidden, read));
                       });
        });
    passes.finish();
    const AnswerScore loss = mean_score(losses);
    check_number(loss.mean, items.name);
    const NamedValue mean_loss{"loss", loss.mean, loss.error, all, cut};
    if (classes == 1) return {{"spearman", spearman(numbers, wanted), kNone, all, cut}, mean_loss};
    return {{"accuracy", accuracy(said, truth), mean_score(hits).error, all, cut},
            {"f1", classes == 2 ? f1_of_class(said, truth, 1) : f1_macro(said, truth), kNone, all, cut},
            {"matthews", matthews(said, truth), kNone, all, cut},
            mean_loss};
}

std::vector<NamedValue> translate(model::Model& model, const LabelledWork& work, const LabelledItems& items,
                                  std::int64_t length, const ScoreOptions& options, const OnAnswer& answer,
                                  const Share& progress) {
    const tokenizer::Tokenizer& tokenizer = *work.tokenizer.tokenizer;
    const data::TokenCode code(work.tokenizer.tokenizer);
    data::ItemForm form{settings_of("translation", length, 2).objective,
                        code,
                        data::special_ids(tokenizer, work.tokenizer.files),
                        data::frame_of(tokenizer),
                        length,
                        data::keeps_the_end(work.tokenizer.files)};
    data::end_sources(form.frame, form.special.last);
    // The decoder's start token of the model's files overrides the tokenizer's.
    if (model.config().decoder_start >= 0) form.special.first = model.config().decoder_start;
    if (!work.beams.end_tokens.empty()) form.special.last = work.beams.end_tokens.front();
    data::check(form);
    const auto text_of = [&](std::int64_t i) -> const data::TextItem& {
        return items.items[static_cast<std::size_t>(i)];
    };
    const data::ItemSource source(
        {0,
         [&](std::int64_t i) {
             const auto mine = code.encode(text_of(i).text, nullptr);
             const auto theirs = tokenizer.of_target().encode(text_of(i).other, false).ids;
             return data::TokenItem{{mine.begin(), mine.end()}, {theirs.begin(), theirs.end()}, true, 0};
         }},
        form);
    model::BeamOptions beams = work.beams;
    if (beams.end_tokens.empty()) beams.end_tokens = {form.special.last};
    beams.tokens = std::min(length, beams.tokens);
    beams.beyond_positions = options.beyond_positions;
    beams.skip_layers = options.skip_layers;
    beams.cancellation = options.cancellation;
    TokenScores scores;
    BleuCounts bleu;
    GroupedPasses passes(model, options);  // the search takes the time
    const std::int64_t all = std::ssize(items.items);
    std::int64_t cut = 0;
    each_batch(all, batch_size(options, length), options, progress, [&](std::int64_t first, std::int64_t count) {
        const data::DataBatch batch = source.read(first, count);
        cut += batch.cut;
        add_label_scores(passes, batch, scores);
        for (std::int64_t i = 0; i < count; ++i) {
            const auto row = static_cast<std::size_t>(i);
            const std::int64_t tokens = batch.lengths.empty() ? batch.length : batch.lengths[row];
            const auto said =
                model::beam_search(model,
                                   std::span(batch.ids).subspan(row * static_cast<std::size_t>(batch.length),
                                                                static_cast<std::size_t>(tokens)),
                                   beams);
            const std::vector<std::int32_t> ids(said.tokens.begin(), said.tokens.end());
            const std::string text = tokenizer.of_target().answer(ids);
            bleu.add(text, text_of(first + i).other);
            hand_out_said(items, first + i, length, text_of(first + i).text, text, text_of(first + i).other, answer);
        }
    });
    passes.finish();
    check_number(scores.loss(), items.name);
    return {{"bleu", bleu.score(), kNone, all, cut},
            {"loss", scores.loss(), scores.loss_error(), scores.targets(), cut}};
}

}  // namespace headscope::evaluation

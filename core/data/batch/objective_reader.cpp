// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/batch/objective_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/io/sha256.h"
#include "core/base/text/text.h"
#include "core/data/batch/item_reader.h"
#include "core/data/batch/truncation.h"
#include "core/data/objectives/list.h"
#include "core/tokenizer/hashed/word_tokenizer.h"

namespace headscope::data {
namespace {

constexpr std::int64_t kMostClasses = 1 << 24;  // token files have float32

SpecialIds special_of(const DataSettings& settings, const ChosenTokenizer& chosen) {
    SpecialIds special = special_ids(*chosen.tokenizer, chosen.files);
    // Marian's and T5's decoders begin with the padding token.
    if (kind_of(settings.objective).translates && special.first < 0) special.first = special.padding;
    return special;
}

Frame frame_for(const DataSettings& settings, const ChosenTokenizer& chosen, const SpecialIds& special) {
    Frame frame;
    if (reads_items(settings.objective)) frame = frame_of(*chosen.tokenizer);
    if (kind_of(settings.objective).translates) end_sources(frame, special.last);
    return frame;
}

void check_encoder(const ItemForm& form) {
    if (form.special.first < 0 || form.special.last < 0) {
        throw Error(ErrorCode::usage, "data.tokenizer",
                    "expected a tokenizer with tokens that begin and end a sequence: <s> and </s>, or [CLS] and [SEP]",
                    form.special.first < 0 ? "found none to begin with" : "found none to end with");
    }
    if (form.length < 3) {
        throw Error(ErrorCode::usage, "data.sequence_length", "expected a number from 3 on: <s>, text and </s>",
                    "found " + std::to_string(form.length));
    }
    Corruption(form.objective, form.special, form.code.ids(), form.code.hashed());
}

}  // namespace

ObjectiveReader::ObjectiveReader(const DataSettings& settings, const ChosenTokenizer& chosen)
    : form_{
          settings.objective, TokenCode(chosen.tokenizer), special_of(settings, chosen), {}, settings.sequence_length} {
    form_.frame = frame_for(settings, chosen, form_.special);
    form_.keep_end = keeps_the_end(chosen.files);
    reads_items(settings.objective) ? check(form_) : check_encoder(form_);
}

std::string ObjectiveReader::key() const {
    const ObjectiveSettings& objective = form_.objective;
    const ObjectiveKind& kind = kind_of(objective);
    nlohmann::json key = {{"objective", objective.kind}, {"length", form_.length}};
    if (kind.data == ObjectiveData::corrupted && kind.masks) key["mask"] = objective.mask;
    if (kind.data == ObjectiveData::corrupted && !kind.masks) key["shares"] = {objective.shuffle, objective.random};
    if (kind.labels()) key["classes"] = objective.classes;
    if (kind.spans) key["stride"] = objective.stride;
    if (kind.pairs() && form_.frame.has_types()) key["types"] = true;
    if (kind.reads_items() && !kind.spans && form_.keep_end) key["keep_end"] = true;
    return key.dump();
}

std::unique_ptr<const BatchSource> ObjectiveReader::source(TextRows rows, std::uint64_t seed) const {
    return std::make_unique<EncoderSource>(
        std::move(rows), form_.code, form_.special,
        Corruption(form_.objective, form_.special, form_.code.ids(), form_.code.hashed()), form_.length, seed);
}

std::unique_ptr<const BatchSource> ObjectiveReader::source(ItemRows rows) const {
    return std::make_unique<ItemSource>(std::move(rows), form_);
}

std::unique_ptr<const BatchSource> ObjectiveReader::question_source(QuestionRows rows, std::uint64_t seed) const {
    return std::make_unique<SpanSource>(std::move(rows), form_, seed);
}

void check_objective(const DataSettings& settings, bool hashed) {
    const ObjectiveSettings& objective = settings.objective;
    const ObjectiveKind& kind = kind_of(objective);
    if (kind.reads_stream() && hashed) {
        throw Error(ErrorCode::usage, "objective.kind", "expected shuffle_random or classify for a hash embedding",
                    "found next_token, which wants a vocabulary to say words of");
    }
    if (!kind.reads_stream() && settings.fixed_token) {
        throw Error(ErrorCode::usage, "data.fixed_token", "expected it with the objective next_token only",
                    "found " + objective.kind);
    }
    if (kind.labels() && (objective.classes < 1 || objective.classes > kMostClasses)) {
        throw Error(ErrorCode::usage, "objective.classes",
                    "expected a number from 1 to " + std::to_string(kMostClasses),
                    "found " + std::to_string(objective.classes));
    }
}

ChosenTokenizer word_tokenizer(const HashedWords& words) {
    ChosenTokenizer chosen;
    chosen.tokenizer = words.tokenizer;
    chosen.files = words.files;
    const tokenizer::WordHash& hash = *words.tokenizer->word_hash();
    Sha256 sum;
    sum.update(tokenizer::hash_settings_json(hash.settings()) + "\n");
    for (const TokenizerFile& file : words.files) sum.update(sha256_hex(file.content) + " " + file.name + "\n");
    sum.update(hash.normal().data(), hash.normal().size() * sizeof(double));
    chosen.sha256 = sum.finish();
    return chosen;
}

}  // namespace headscope::data

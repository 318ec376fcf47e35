// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/generate/processors.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"

namespace headscope::model {
namespace {

using Ids = std::span<const std::int64_t>;
using Scores = std::span<double>;
using List = std::vector<std::int64_t>;

constexpr double kNever = -std::numeric_limits<double>::infinity();

/// Calls work(score) for each of these tokens that the vocabulary has.
template <typename Work>
void each_score(Ids tokens, Scores scores, const Work& work) {
    for (const std::int64_t token : tokens)
        if (token >= 0 && token < std::ssize(scores)) work(scores[static_cast<std::size_t>(token)]);
}

void forbid(Ids tokens, Scores scores) {
    each_score(tokens, scores, [](double& score) { score = kNever; });
}

/// All others never, these with a score of 0.
void force(Ids tokens, Scores scores) {
    std::fill(scores.begin(), scores.end(), kNever);
    each_score(tokens, scores, [](double& score) { score = 0; });
}

List distinct(Ids tokens) {
    List sorted(tokens.begin(), tokens.end());
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    return sorted;
}

/// Makes negative scores `penalty` times as large and divides the others by it, once for each token.
void penalize(Ids tokens, double penalty, Scores scores) {
    each_score(distinct(tokens), scores, [&](double& score) { score = score < 0 ? score * penalty : score / penalty; });
}

/// Forbids the tokens that would complete a run of `size` tokens of `earlier` at the end of `text`.
void forbid_ngrams(Ids earlier, std::int64_t size, Ids text, Scores scores) {
    const auto length = static_cast<std::size_t>(size);
    if (text.size() + 1 < length || earlier.size() < length) return;
    const Ids prefix = text.last(length - 1);
    for (std::size_t at = 0; at + length <= earlier.size(); ++at) {
        const Ids window = earlier.subspan(at, length);
        if (std::equal(prefix.begin(), prefix.end(), window.begin())) forbid(window.last(1), scores);
    }
}

/// Adds to the score of a sequence's last token where `text` ends with those before it.
void add_bias(const std::vector<SequenceBias>& biases, Ids text, Scores scores) {
    for (const auto& [tokens, bias] : biases) {
        const Ids before = Ids(tokens).first(tokens.size() - 1);
        if (before.size() > text.size()) continue;
        const Ids end = text.last(before.size());
        if (!std::equal(before.begin(), before.end(), end.begin())) continue;
        each_score(Ids(tokens).last(1), scores, [bias = bias](double& score) { score += bias; });
    }
}

/// The bad words but the end tokens, which stay allowed.
std::vector<SequenceBias> bad_words(const std::vector<List>& words, Ids ends) {
    std::vector<SequenceBias> biases;
    for (const List& word : words) {
        const bool is_end = word.size() == 1 && std::count(ends.begin(), ends.end(), word.front()) > 0;
        if (!is_end) biases.push_back({word, kNever});
    }
    return biases;
}

void remove_invalid(Scores scores) {
    constexpr double most = std::numeric_limits<float>::max();
    for (double& score : scores) score = std::isnan(score) ? 0 : std::clamp(score, -most, most);
}

void decay(Ids ends, double factor, std::int64_t beyond, Scores scores) {
    each_score(distinct(ends), scores, [&](double& score) {
        if (std::isfinite(score)) score += std::abs(score) * (std::pow(factor, static_cast<double>(beyond)) - 1);
    });
}

void renormalize(Scores scores) {
    const double most = *std::max_element(scores.begin(), scores.end());
    if (std::isinf(most)) return;
    double sum = 0;
    for (const double score : scores) sum += std::exp(score - most);
    for (double& score : scores) score -= most + std::log(sum);
}

class TokenCheck {
public:
    TokenCheck(const GenerationSettings& settings, std::int64_t vocabulary)
        : settings_(settings), vocabulary_(vocabulary) {}
    void operator()(const char* key, Ids tokens) const {
        for (const std::int64_t token : tokens)
            if (token >= vocabulary_)
                throw Error(ErrorCode::mismatch, settings_.file + ": " + key,
                            "expected tokens below the vocabulary's " + std::to_string(vocabulary_),
                            "found " + std::to_string(token));
    }

private:
    const GenerationSettings& settings_;
    std::int64_t vocabulary_;
};

/// Tokens that are forced or biased must be of the vocabulary; those that are only forbidden need not.
void check_tokens(const GenerationSettings& settings, std::int64_t vocabulary) {
    const TokenCheck check(settings, vocabulary);
    if (settings.forced_bos) check("forced_bos_token_id", Ids(&*settings.forced_bos, 1));
    check("forced_eos_token_id", settings.forced_ends);
    for (const List& word : settings.bad_words) check("bad_words_ids", word);
    for (const SequenceBias& bias : settings.sequence_bias) check("sequence_bias", bias.tokens);
}

}  // namespace

LogitsProcessors::LogitsProcessors(const GenerationSettings& settings, const AnswerFrame& frame) {
    check_tokens(settings, frame.vocabulary);
    const auto add = [this](bool active, std::function<void(Ids, Scores)> step) {
        if (active) steps_.push_back(std::move(step));
    };
    const List source(frame.source.begin(), frame.source.end()), ends(frame.ends.begin(), frame.ends.end());
    const auto length = [](Ids text) { return std::ssize(text); };

    add(!settings.sequence_bias.empty(),
        [biases = settings.sequence_bias](Ids text, Scores scores) { add_bias(biases, text, scores); });
    add(settings.encoder_repetition_penalty != 1, [source, penalty = 1 / settings.encoder_repetition_penalty](
                                                      Ids, Scores scores) { penalize(source, penalty, scores); });
    add(settings.repetition_penalty != 1,
        [penalty = settings.repetition_penalty](Ids text, Scores scores) { penalize(text, penalty, scores); });
    add(settings.no_repeat_ngram > 0,
        [size = settings.no_repeat_ngram](Ids text, Scores scores) { forbid_ngrams(text, size, text, scores); });
    add(settings.encoder_no_repeat_ngram > 0,
        [source, size = settings.encoder_no_repeat_ngram](Ids text, Scores scores) {
            forbid_ngrams(source, size, text, scores);
        });
    add(!settings.bad_words.empty(),
        [biases = bad_words(settings.bad_words, ends)](Ids text, Scores scores) { add_bias(biases, text, scores); });
    const std::int64_t shortest = settings.shortest_new ? frame.begun + *settings.shortest_new : settings.shortest;
    add(shortest > 0 && !ends.empty(), [ends, shortest, length](Ids text, Scores scores) {
        if (length(text) < shortest) forbid(ends, scores);
    });
    add(settings.forced_bos.has_value(), [token = settings.forced_bos.value_or(0), length](Ids text, Scores scores) {
        if (length(text) == 1) force(Ids(&token, 1), scores);
    });
    add(!settings.forced_ends.empty(),
        [forced = settings.forced_ends, last = frame.longest - 1, length](Ids text, Scores scores) {
            if (length(text) == last) force(forced, scores);
        });
    add(settings.remove_invalid, [](Ids, Scores scores) { remove_invalid(scores); });
    if (settings.length_decay && !ends.empty())
        add(true, [ends, start = frame.begun + settings.length_decay->first, factor = settings.length_decay->second,
                   length](Ids text, Scores scores) {
            if (length(text) > start) decay(ends, factor, length(text) - start, scores);
        });
    add(!settings.suppressed.empty(), [tokens = settings.suppressed](Ids, Scores scores) { forbid(tokens, scores); });
    const bool first_is_forced = frame.begun == 1 && settings.forced_bos;
    add(!settings.suppressed_first.empty(),
        [tokens = settings.suppressed_first, at = frame.begun + (first_is_forced ? 1 : 0), length](Ids text,
                                                                                                   Scores scores) {
            if (length(text) == at) forbid(tokens, scores);
        });
    add(settings.renormalize, [](Ids, Scores scores) { renormalize(scores); });
}

void LogitsProcessors::apply(Ids text, Scores scores) const {
    for (const auto& step : steps_) step(text, scores);
}

}  // namespace headscope::model

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/corpus/corpus.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <c10/core/InferenceMode.h>

#include "core/ask/answers.h"
#include "core/ask/corpus/corpus_tables.h"
#include "core/ask/corpus/head_measures.h"
#include "core/ask/corpus/kept_texts.h"
#include "core/ask/readers.h"
#include "core/base/error.h"
#include "core/base/splitmix64.h"
#include "core/model/model.h"
#include "kernels/indicators.h"

namespace headscope::ask::corpus {
namespace {

constexpr std::int64_t kFewestSetting = 50, kMostSetting = 2000;  // texts that set the intervals

std::int64_t setting_texts(const CorpusOptions& options) {
    return std::min(kMostSetting, std::max(kFewestSetting, options.documents / 10));
}

/// A corpus that has grown since a file was begun may have other texts that set the intervals.
void check_sizes(const store::AskRecord& record) {
    for (const store::AskTable& table : record.tables) {
        std::int64_t cells = 1;
        for (const std::int64_t size : record.shape_of(table)) cells *= size;
        if (cells != std::ssize(table.values))
            throw Error(ErrorCode::usage, "--resume", "expected the corpus that the file was begun with",
                        "found another number of texts");
    }
}

class Corpus {
public:
    Corpus(model::Model& model, const CorpusOptions& options, store::AskRecord& record)
        : model_(model),
          options_(options),
          record_(record),
          heads_(record.size_of("/head")),
          slots_(record.size_of("/slot")),
          setting_(setting_texts(options)),
          kinds_(kernels::indicators_of(kernels::IndicatorKind::weights)),
          kept_(record) {}

    double& counter(Counter which) { return values("/corpus/progress")[which]; }

    /// Measures of kept texts, which a file does not have, again.
    void restore(const Cancellation& cancellation) {
        const double* const place = values("/corpus/kept_sequence");
        for (std::int64_t s = 0; s < kept_.size(); ++s) {
            if (kept_.uses(s) == 0) continue;
            const auto all = measure(record_.sequences[static_cast<std::size_t>(s)], cancellation);
            for (std::size_t head = 0; head < all.size(); ++head)
                for (std::int64_t slot = 0; slot < slots_; ++slot) {
                    const std::size_t cell = head * static_cast<std::size_t>(slots_) + static_cast<std::size_t>(slot);
                    if (place[cell] == static_cast<double>(s)) shown_[cell] = all[head];
                }
        }
    }

    /// A document for the first time: counted, and either sets the intervals or may be kept.
    void first(std::int64_t document, const store::SequenceTokens& text, const Cancellation& cancellation) {
        if (text.predicted().ids.size() > 1) {
            const auto all = measure(text, cancellation);
            const auto number = static_cast<std::int64_t>(counter(kTexts));
            add(text, all);
            if (number < setting_) {
                double* const row = values("/corpus/setting_maximum") + number * std::ssize(all);
                for (std::size_t head = 0; head < all.size(); ++head)
                    if (all[head].measured) row[head] = all[head].maximum;
                counter(kSettingEnd) = static_cast<double>(document + 1);
                if (number + 1 == setting_) set_intervals();
            } else {
                keep_some(document, text, all);
            }
        }
        counter(kDocuments) = static_cast<double>(document + 1);
    }

    /// One of the documents that set the intervals, again.
    void second(std::int64_t document, const store::SequenceTokens& text, const Cancellation& cancellation) {
        if (text.predicted().ids.size() > 1) keep_some(document, text, measure(text, cancellation));
        counter(kAgain) = static_cast<double>(document + 1);
    }

    /// All documents are counted: the intervals are set, if there were too few texts for it.
    void close_first() {
        if (counter(kTexts) < static_cast<double>(setting_)) set_intervals();
    }

    void finish() {
        const double all = counter(kTokens), pairs = all - counter(kTexts);
        const auto each = [&](const char* measure, const char* sum, double count) {
            double* const to = values(corpus_path(measure));
            const double* const from = values(std::string("/corpus/sum/") + sum);
            for (std::size_t head = 0; head < head_count(); ++head)
                if (count > 0 && counted(head)) to[head] = from[head] / count;
        };
        each("self_attention_score", "self", all);
        each("prev_token_score", "previous", pairs);
        each("pattern_entropy", "entropy", all);
        each("qk_distance", "distance", all);
        each("qk_distance_variance", "square", all);
        each("induction_score", "induction", counter(kRepeats));
        each("maximum_mean", "maximum", counter(kTexts));
        double* const variance = values("/corpus/qk_distance_variance");
        const double* const mean = values("/corpus/qk_distance");
        for (std::size_t head = 0; head < head_count(); ++head) variance[head] -= mean[head] * mean[head];
        kept_.compact();
        for (std::size_t head = 0; head < head_count(); ++head) summarize(head);
    }

private:
    double* values(const std::string& path) { return answer_table(record_, path).values.data(); }
    std::size_t head_count() const { return record_.sites.size() * static_cast<std::size_t>(heads_); }
    bool counted(std::size_t head) {
        const Site& site = record_.sites[head / static_cast<std::size_t>(heads_)];
        return site.has_matrix && attends_predicted(site) &&
               head % static_cast<std::size_t>(heads_) < static_cast<std::size_t>(site.heads);
    }

    std::vector<HeadMeasures> measure(const store::SequenceTokens& text, const Cancellation& cancellation) {
        cancellation.check();
        return measure_heads(model_, text, heads_, options_.editor, cancellation);
    }

    void add(const store::SequenceTokens& text, const std::vector<HeadMeasures>& all) {
        for (const CorpusSum& one : kCorpusSums) {
            double* const sums = values(one.path);
            for (std::size_t head = 0; head < all.size(); ++head) sums[head] += all[head].*one.member;
        }
        double* const histogram = values("/corpus/maximum_histogram");
        for (std::size_t head = 0; head < all.size(); ++head) {
            if (!all[head].measured) continue;
            const auto cell = static_cast<std::int64_t>(all[head].maximum * static_cast<double>(kHistogramCells));
            ++histogram[static_cast<std::int64_t>(head) * kHistogramCells +
                        std::clamp<std::int64_t>(cell, 0, kHistogramCells - 1)];
        }
        for (std::size_t k = 0; k < kinds_.size(); ++k) add_indicator(k, all);
        ++counter(kTexts);
        const std::vector<std::int32_t>& ids = text.predicted().ids;
        counter(kTokens) += static_cast<double>(ids.size());
        for (const auto& followers : induction_keys(ids)) counter(kRepeats) += followers.empty() ? 0 : 1;
    }

    /// Mean and deviation by Welford's updates.
    void add_indicator(std::size_t kind, const std::vector<HeadMeasures>& all) {
        const std::string name = kinds_[kind]->name;
        double *const mean = values("/corpus/mean/" + name), *const deviation = values("/corpus/std/" + name);
        double* const count = values("/corpus/count/" + name);
        for (std::size_t head = 0; head < all.size(); ++head) {
            if (!all[head].measured || std::isnan(all[head].indicators[kind])) continue;
            const double value = all[head].indicators[kind], before = count[head]++;
            const double old = before > 0 ? mean[head] : 0;
            mean[head] = old + (value - old) / count[head];
            if (before == 0) continue;
            const double squares = before > 1 ? deviation[head] * deviation[head] * (before - 1) : 0;
            deviation[head] = std::sqrt((squares + (value - old) * (value - mean[head])) / before);
        }
    }

    /// Quantiles of the maxima seen: boundary i is the one of place round(i N / intervals).
    void set_intervals() {
        const auto count = static_cast<std::int64_t>(std::min(counter(kTexts), static_cast<double>(setting_)));
        const double* const maxima = values("/corpus/setting_maximum");
        double* const boundaries = values("/corpus/interval_boundary");
        const auto heads = static_cast<std::int64_t>(head_count());
        for (std::int64_t head = 0; head < heads; ++head) {
            if (count == 0 || !counted(static_cast<std::size_t>(head))) continue;
            std::vector<double> sorted;
            for (std::int64_t text = 0; text < count; ++text) sorted.push_back(maxima[text * heads + head]);
            std::sort(sorted.begin(), sorted.end());
            for (std::int64_t i = 1; i < options_.intervals; ++i) {
                const double place = std::nearbyint(static_cast<double>(i * count) /
                                                    static_cast<double>(options_.intervals));  // halves to even
                boundaries[head * (options_.intervals - 1) + i - 1] = sorted[static_cast<std::size_t>(
                    std::min<std::int64_t>(static_cast<std::int64_t>(place), count - 1))];
            }
        }
    }

    void keep_some(std::int64_t document, const store::SequenceTokens& text, const std::vector<HeadMeasures>& all) {
        for (std::size_t head = 0; head < all.size(); ++head)
            if (all[head].measured) offer(head, document, text, all[head]);
    }

    void offer(std::size_t head, std::int64_t document, const store::SequenceTokens& text, const HeadMeasures& own) {
        const std::int64_t last = options_.intervals - 1;
        const double* const boundaries = values("/corpus/interval_boundary") + static_cast<std::int64_t>(head) * last;
        std::int64_t interval = 0;
        while (interval < last && own.maximum >= boundaries[interval]) ++interval;
        const std::size_t begin =
            head * static_cast<std::size_t>(slots_) + static_cast<std::size_t>(kKeptByChance * interval);
        double& seen =
            values("/corpus/interval_count")[static_cast<std::int64_t>(head) * options_.intervals + interval];
        const auto before = static_cast<std::int64_t>(seen++);
        std::int64_t slot = before;
        if (interval == last) {
            const double* const maxima = values("/corpus/kept_maximum") + begin;
            if (before >= kKeptHighest) {
                slot = std::min_element(maxima, maxima + kKeptHighest) - maxima;
                if (maxima[slot] >= own.maximum) return;
            }
        } else if (before >= kKeptByChance) {
            const std::uint64_t draw =
                splitmix64(splitmix64(options_.seed + head) + static_cast<std::uint64_t>(document));
            slot = static_cast<std::int64_t>(draw % static_cast<std::uint64_t>(before + 1));
            if (slot >= kKeptByChance) return;
        }
        put_in(begin + static_cast<std::size_t>(slot), document, text, own);
    }

    void put_in(std::size_t cell, std::int64_t document, const store::SequenceTokens& text, const HeadMeasures& own) {
        double& place = values("/corpus/kept_sequence")[cell];
        if (place >= 0) kept_.release(static_cast<std::int64_t>(place));
        place = static_cast<double>(kept_.keep(document, text));
        values("/corpus/kept")[cell] = static_cast<double>(document);
        values("/corpus/kept_maximum")[cell] = own.maximum;
        values("/corpus/kept_query")[cell] = static_cast<double>(own.query);
        values("/corpus/kept_key")[cell] = static_cast<double>(own.key);
        shown_[cell] = own;
    }

    /// Tokens by weight and distances of the texts that a head keeps.
    void summarize(std::size_t head) {
        std::map<std::int32_t, double> queries, keys;
        std::array<double, kDistanceBins> distances{};
        const double* const places = values("/corpus/kept_sequence");
        for (std::int64_t slot = 0; slot < slots_; ++slot) {
            const std::size_t cell = head * static_cast<std::size_t>(slots_) + static_cast<std::size_t>(slot);
            if (!(places[cell] >= 0)) continue;
            const store::SequenceTokens& text = record_.sequences[static_cast<std::size_t>(places[cell])];
            const std::vector<std::int32_t>& ids = text.predicted().ids;
            const HeadMeasures& own = shown_.at(cell);
            for (std::size_t i = 0; i < ids.size(); ++i) {
                queries[ids[i]] += own.query_mass[i];
                keys[ids[i]] += own.key_mass[i];
            }
            for (std::size_t bin = 0; bin < kDistanceBins; ++bin) distances[bin] += own.distances[bin];
        }
        std::copy(distances.begin(), distances.end(), values("/corpus/distance_histogram") + head * kDistanceBins);
        top_tokens(head, queries, "/corpus/query_token", "/corpus/query_mass");
        top_tokens(head, keys, "/corpus/key_token", "/corpus/key_mass");
    }

    void top_tokens(std::size_t head, const std::map<std::int32_t, double>& masses, const char* tokens,
                    const char* weights) {
        std::vector<std::pair<double, std::int32_t>> order;
        for (const auto& [token, mass] : masses)
            if (mass > 0) order.emplace_back(-mass, token);
        std::sort(order.begin(), order.end());
        const std::size_t begin = head * kTopTokens;
        for (std::size_t i = 0; i < order.size() && i < kTopTokens; ++i) {
            values(tokens)[begin + i] = order[i].second;
            values(weights)[begin + i] = -order[i].first;
        }
    }

    model::Model& model_;
    const CorpusOptions& options_;
    store::AskRecord& record_;
    std::int64_t heads_, slots_, setting_;
    std::vector<const kernels::Indicator*> kinds_;
    KeptTexts kept_;
    std::map<std::size_t, HeadMeasures> shown_;  ///< by cell of /corpus/kept
};

}  // namespace

void run_corpus(model::Model& model, const CorpusSource& source, const CorpusOptions& options, store::AskRecord& record,
                Progress& progress, const Cancellation& cancellation) {
    const c10::InferenceMode inference;
    check_decoder(model, "corpus", true);
    check_scores(model, options.editor, "corpus");
    CorpusSizes sizes;
    sizes.setting_texts = setting_texts(options);
    sizes.intervals = options.intervals;
    add_corpus_dimensions(record, sizes);
    if (record.tables.empty()) add_corpus_tables(record);
    Corpus corpus(model, options, record);
    check_sizes(record);
    corpus.restore(cancellation);
    const double all = static_cast<double>(options.documents);
    const auto step = [&](std::int64_t document, const char* what) {
        progress.advance(static_cast<double>(document), all,
                         what + std::to_string(document + 1) + " of " + std::to_string(options.documents));
        if (options.saved) options.saved();
    };
    const auto begun = static_cast<std::int64_t>(corpus.counter(kDocuments));
    source(begun, options.documents, [&](std::int64_t document, const store::SequenceTokens& text) {
        corpus.first(document, text, cancellation);
        step(document, "text ");
    });
    corpus.close_first();
    if (options.two_passes) {
        source(static_cast<std::int64_t>(corpus.counter(kAgain)),
               static_cast<std::int64_t>(corpus.counter(kSettingEnd)),
               [&](std::int64_t document, const store::SequenceTokens& text) {
                   corpus.second(document, text, cancellation);
                   step(document, "second pass, text ");
               });
    }
    corpus.finish();
    record.complete = true;
}

}  // namespace headscope::ask::corpus

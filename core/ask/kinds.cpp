// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/kinds.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <span>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include "core/analysis/dense_rows.h"
#include "core/ask/answers.h"
#include "core/ask/cells.h"
#include "core/ask/corpus/head_measures.h"
#include "core/ask/readers.h"
#include "core/ask/sweep.h"
#include "core/base/error.h"
#include "core/data/random.h"
#include "core/model/generate/generate.h"
#include "core/model/model.h"
#include "core/model/towers/cache.h"

namespace headscope::ask {
namespace {

using model::Point;
using model::PointKey;

constexpr const char* kRetrieval = "/kinds/retrieval";
constexpr std::int64_t kMostEditedTokens = 4096;

std::string kind_table(std::size_t kind, bool absolute) {
    return "/kinds/" + std::string(kHeadKinds.at(kind)) + (absolute ? "_absolute" : "");
}

/// Sums over the weights of one head; kinds in the order of kHeadKinds.
struct KindSums {
    double all = 0, sizes = 0;                          ///< weights, and their absolute values
    std::array<double, kHeadKinds.size()> hits{};       ///< weights where such a head attends
    std::array<double, kHeadKinds.size()> distances{};  ///< |weight - 1| - |weight| there
};

/// Places where a head of each kind attends, row by row.
class KindPlaces {
public:
    KindPlaces(const std::vector<std::int32_t>& ids, const KindsOptions& options)
        : behind_(corpus::induction_keys(ids)), options_(&options) {}

    /// Row i of a head's matrix.
    void add(std::size_t i, std::span<const float> row, KindSums& sums) const {
        for (std::size_t j = 0; j < row.size(); ++j) {
            if (excluded(i, j)) continue;
            sums.all += row[j];
            sums.sizes += std::abs(row[j]);
        }
        const auto hit = [&](std::size_t kind, std::size_t j) {
            if (excluded(i, j)) return;
            const double weight = row[j];
            sums.hits.at(kind) += weight;
            sums.distances.at(kind) += std::abs(weight - 1) - std::abs(weight);
        };
        if (i > 0) hit(0, i - 1);
        for (const std::int64_t key : behind_[i]) {
            hit(1, static_cast<std::size_t>(key) - 1);
            hit(2, static_cast<std::size_t>(key));
        }
        hit(3, i);
    }

private:
    bool excluded(std::size_t i, std::size_t j) const {
        return (options_->exclude_first && j == 0) || (options_->exclude_current && i == j);
    }

    std::vector<std::vector<std::int64_t>> behind_;  ///< keys behind earlier copies of each query's token
    const KindsOptions* options_;
};

class Kinds {
public:
    Kinds(model::Model& model, const KindsOptions& options, store::AskRecord& record)
        : model_(model), options_(options), record_(record) {
        if (model::places_of(Point::pattern, model.config(), model.sites()).empty())
            throw Error(ErrorCode::unsupported, "ask kinds", "expected a layer with an attention matrix",
                        "found none in " + model.config().family);
        check_matrices();
        if (options.needle) check_needle();
    }

    void tables() {
        if (options_.needle) record_.add_dimension("/step", options_.generate, "generated token, counted from 0");
        if (!record_.tables.empty()) return;
        const std::vector<std::string> axes{"/sequence", "/site", "/head"};
        for (std::size_t kind = 0; kind < kHeadKinds.size(); ++kind)
            record_.add_table(kind_table(kind, false), axes,
                              "share of the attention where a " + std::string(kHeadKinds[kind]) + " head attends");
        for (std::size_t kind = 0; kind < kHeadKinds.size(); ++kind)
            record_.add_table(
                kind_table(kind, true), axes,
                "1 - mean absolute difference of a row from a " + std::string(kHeadKinds[kind]) + " head's");
        if (!options_.needle) return;
        record_.add_table(kRetrieval, {"/site", "/head"},
                          "copies of the needle that the head looked at, over its tokens");
        record_.add_table("/kinds/answer", {"/step"}, "generated tokens", store::kTokenUnits, true);
    }

    bool done(std::int64_t s) const {
        return has_numbers(values_of_text(record_, record_.table(kind_table(kHeadKinds.size() - 1, true)), s));
    }

    /// Scores are stored when the pass has ended: a text has all of them, or none.
    void sequence(std::int64_t s, const Cancellation& cancellation) {
        const store::SequenceTokens& text = record_.sequences[static_cast<std::size_t>(s)];
        const KindPlaces of_text(text.ids, options_), of_target(text.predicted().ids, options_);
        std::map<std::int64_t, std::vector<KindSums>> found;  // by site and head
        if (edits_matrices_) {
            run(text_input(text).batch(), nullptr, cancellation, [&](const PointKey& key, const at::Tensor& pattern) {
                if (between_texts(key.site)) return;
                found[key.site] =
                    sums_of(pattern[0].to(at::kFloat).contiguous(), counts_target(key, model_) ? of_target : of_text);
            });
        } else {
            SiteReader sites(model_.sites(), text, [&](const model::AttentionRecord& record) {
                const std::int64_t site = record.site.value;
                if (between_texts(site)) return;
                const KindPlaces& places =
                    counts_target({Point::pattern, record.description.layer, site}, model_) ? of_target : of_text;
                const auto length = static_cast<std::size_t>(record.key.size(2));
                std::vector<KindSums>& own = found[site];
                own.resize(static_cast<std::size_t>(record.query.size(1)));
                analysis::for_dense_rows(
                    record, 0, cancellation, [&](std::int64_t head, std::int64_t first, std::span<const float> block) {
                        for (std::size_t row = 0; row * length < block.size(); ++row)
                            places.add(static_cast<std::size_t>(first) + row, block.subspan(row * length, length),
                                       own[static_cast<std::size_t>(head)]);
                    });
            });
            read_run(model_, text_input(text), sites, nullptr, options_.editor, cancellation);
        }
        if (found.empty())
            throw Error(ErrorCode::unsupported, "ask kinds", "expected a layer with an attention matrix",
                        "found none in " + model_.config().family);
        for (const auto& [site, heads] : found) {
            const bool decodes = counts_target({Point::pattern, -1, site}, model_);
            const auto length = static_cast<double>((decodes ? text.predicted() : text).ids.size());
            for (std::size_t head = 0; head < heads.size(); ++head)
                score({s, site, static_cast<std::int64_t>(head)}, heads[head], length);
        }
    }

    /// Whole numbers of a file have -1 where there is none.
    bool has_retrieval() const { return get(record_, "/kinds/answer", {options_.generate - 1}) >= 0; }

    /// Stores all steps at the end.
    void retrieval(const Cancellation& cancellation, const std::function<void(std::int64_t step)>& step) {
        const at::Tensor text = text_ids(record_.sequences.front().ids);
        const std::int64_t length = text.size(0), needle = last_ - first_ + 1;
        const std::unique_ptr<model::Cache> cache = model_.new_cache();
        if (length > 1)
            forward(TextInput{text.narrow(0, 0, length - 1)}.batch(), cache.get(), options_.editor, cancellation);
        at::Tensor token = text.narrow(0, length - 1, 1);
        std::map<std::int64_t, std::vector<double>> shares;  // by site and head
        std::vector<std::int64_t> answer;
        for (std::int64_t t = 0; t < options_.generate; ++t) {
            cancellation.check();
            std::map<std::int64_t, at::Tensor> largest;  // [H] key of the largest weight of the last row, by site
            at::Tensor hidden;
            run(
                TextInput{token}.batch(), cache.get(), cancellation,
                [&](const PointKey& key, const at::Tensor& pattern) {
                    largest[key.site] = pattern[0].select(1, pattern.size(2) - 1).argmax(1);
                },
                &hidden);
            const std::int64_t made = model_.logits(hidden.select(1, hidden.size(1) - 1)).argmax().item<std::int64_t>();
            answer.push_back(made);
            for (const auto& [site, keys] : largest) {
                std::vector<double>& own = shares[site];
                own.resize(static_cast<std::size_t>(keys.size(0)), 0.0);
                for (std::int64_t head = 0; head < keys.size(0); ++head) {
                    const std::int64_t key = keys[head].item<std::int64_t>();
                    const bool copies = key >= first_ && key <= last_ && text[key].item<std::int64_t>() == made;
                    own[static_cast<std::size_t>(head)] += copies ? 1.0 / static_cast<double>(needle) : 0;
                }
            }
            token = at::tensor(std::vector<std::int64_t>{made}, at::kLong);
            step(t);
        }
        for (const auto& [site, own] : shares)
            for (std::size_t head = 0; head < own.size(); ++head)
                put(record_, kRetrieval, {site, static_cast<std::int64_t>(head)}, own[head]);
        for (std::size_t t = 0; t < answer.size(); ++t)
            put(record_, "/kinds/answer", {static_cast<std::int64_t>(t)}, static_cast<double>(answer[t]));
    }

private:
    /// Cross-attention: queries and keys are of different texts, between which no kind is defined.
    bool between_texts(std::int64_t site) const { return model_.sites()[static_cast<std::size_t>(site)].is_cross(); }

    at::Tensor forward(const model::Batch& batch, model::Cache* cache, model::Editor* editor,
                       const Cancellation& cancellation) {
        model::ForwardOptions options;
        options.cache = cache;
        options.editor = editor;
        options.cancellation = &cancellation;
        return model_.forward(batch, options);
    }

    void run(const model::Batch& batch, model::Cache* cache, const Cancellation& cancellation,
             const ValueReader::Take& read, at::Tensor* hidden = nullptr) {
        ValueReader reader(model::places_of(Point::pattern, model_.config(), model_.sites()), read);
        model::EditorChain both({options_.editor, &reader});
        const at::Tensor last = forward(batch, cache, &both, cancellation);
        if (hidden) *hidden = last;
    }

    /// Sums by head of matrices [H, L, L] float32.
    static std::vector<KindSums> sums_of(const at::Tensor& matrices, const KindPlaces& places) {
        const std::int64_t heads = matrices.size(0), length = matrices.size(2);
        std::vector<KindSums> sums(static_cast<std::size_t>(heads));
        for (std::int64_t row = 0; row < heads * length; ++row) {
            const float* const begin = matrices.const_data_ptr<float>() + row * length;
            places.add(static_cast<std::size_t>(row % length), {begin, static_cast<std::size_t>(length)},
                       sums[static_cast<std::size_t>(row / length)]);
        }
        return sums;
    }

    void score(const std::vector<std::int64_t>& index, const KindSums& sums, double length) {
        for (std::size_t kind = 0; kind < kHeadKinds.size(); ++kind) {
            put(record_, kind_table(kind, false), index, sums.hits.at(kind) / sums.all);
            put(record_, kind_table(kind, true), index, 1 - (sums.sizes + sums.distances.at(kind)) / length);
        }
    }

    /// With edits of scores or weights the matrices of a layer are in memory.
    void check_matrices() {
        for (const Point point : {Point::scores, Point::pattern})
            for (const PointKey& key : model::places_of(point, model_.config(), model_.sites()))
                edits_matrices_ = edits_matrices_ || (options_.editor && options_.editor->edits(key));
        for (std::size_t s = 0; edits_matrices_ && s < record_.sequences.size(); ++s) {
            const store::SequenceTokens& text = record_.sequences[s];
            const std::int64_t longest = std::max(std::ssize(text.ids), std::ssize(text.predicted().ids));
            if (longest > kMostEditedTokens)
                throw Error(ErrorCode::limit, "ask kinds",
                            "expected texts of at most " + std::to_string(kMostEditedTokens) +
                                " tokens with edits of scores or pattern",
                            "found " + std::to_string(longest) + " in text " + std::to_string(s));
        }
    }

    void check_needle() {
        const auto refuse = [](const char* option, const std::string& expected, const std::string& found) {
            throw Error(ErrorCode::usage, option, "expected " + expected, "found " + found);
        };
        if (!model_.has_head() || !model_.causal() || model_.config().encoder)
            refuse("--needle", "a decoder with a head for the vocabulary",
                   model_.config().encoder ? "an encoder-decoder" : "another model");
        if (record_.sequences.empty()) refuse("--needle", "a text of its own", "none");
        const std::int64_t length = std::ssize(record_.sequences.front().ids);
        first_ = options_.needle->first < 0 ? length + options_.needle->first : options_.needle->first;
        last_ = options_.needle->last < 0 ? length + options_.needle->last : options_.needle->last;
        if (first_ < 0 || last_ < first_ || last_ >= length)
            refuse("--needle", "positions of text 0, which has " + std::to_string(length) + " tokens",
                   std::to_string(options_.needle->first) + " to " + std::to_string(options_.needle->last));
        const std::int64_t room = model::room_for_tokens(model_.config(), length, false);
        if (options_.generate < 1 || options_.generate > room)
            refuse("--generate", "from 1 to " + std::to_string(room) + " tokens for --needle",
                   std::to_string(options_.generate));
    }

    model::Model& model_;
    const KindsOptions& options_;
    store::AskRecord& record_;
    std::int64_t first_ = 0, last_ = 0;  ///< the needle
    bool edits_matrices_ = false;        ///< an edit of scores or pattern: what a probe measures is without it
};

}  // namespace

std::vector<std::vector<std::int32_t>> repeated_texts(std::int64_t count, std::int64_t half, std::int64_t vocabulary,
                                                      std::optional<std::int32_t> first, std::uint64_t seed) {
    std::vector<std::vector<std::int32_t>> texts;
    for (std::int64_t n = 0; n < count; ++n) {
        data::Random random(seed, static_cast<std::uint64_t>(n));
        std::vector<std::int32_t> drawn;
        for (std::int64_t i = 0; i < half; ++i) drawn.push_back(static_cast<std::int32_t>(random.below(vocabulary)));
        std::vector<std::int32_t> text;
        if (first) text.push_back(*first);
        text.insert(text.end(), drawn.begin(), drawn.end());
        text.insert(text.end(), drawn.begin(), drawn.end());
        texts.push_back(std::move(text));
    }
    return texts;
}

void run_kinds(model::Model& model, const KindsOptions& options, store::AskRecord& record, Progress& progress,
               const Cancellation& cancellation) {
    if (record.sequences.empty()) throw Error(ErrorCode::usage, "ask kinds", "expected texts or --drawn", "found none");
    Kinds kinds(model, options, record);
    kinds.tables();
    const std::int64_t texts = std::ssize(record.sequences), steps = options.needle ? options.generate : 0;
    const auto all = static_cast<double>(texts + steps);
    for_open_texts(
        record, all, progress, options.saved, [&](std::int64_t s) { return kinds.done(s); },
        [&](std::int64_t s) {
            cancellation.check();
            kinds.sequence(s, cancellation);
        });
    if (steps > 0 && !kinds.has_retrieval())
        kinds.retrieval(cancellation, [&](std::int64_t step) {
            progress.advance(static_cast<double>(texts + step + 1), all, "retrieval");
        });
    record.complete = true;
}

}  // namespace headscope::ask

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/kinds.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "core/ask/answers.h"
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

std::string kind_table(std::size_t kind, bool absolute) {
    return "/kinds/" + std::string(kHeadKinds.at(kind)) + (absolute ? "_absolute" : "");
}

/// Scores of one head, in the order of kHeadKinds.
struct HeadScores {
    std::int64_t site = 0, head = 0;
    std::array<double, kHeadKinds.size()> share{}, absolute{};
};

/// Passes the patterns of a run on to a function and changes nothing.
class KindsReader final : public model::Editor {
public:
    using Read = std::function<void(std::int64_t site, const at::Tensor& pattern)>;
    explicit KindsReader(Read read) : read_(std::move(read)) {}
    bool edits(const PointKey& key) const override { return key.point == Point::pattern; }
    at::Tensor edit(const model::EditPlace& place, const at::Tensor& value) override {
        read_(place.key.site, value);
        return value;
    }

private:
    Read read_;
};

/// Places where a head of each kind attends, [L, L] float64 of 0 and 1, in the order of kHeadKinds.
std::array<at::Tensor, 4> detection_matrices(const at::Tensor& ids) {
    const std::int64_t length = ids.size(0);
    const at::Tensor same = ids.unsqueeze(1).eq(ids.unsqueeze(0)).to(at::kDouble).tril(-1);
    const at::Tensor none = at::zeros({length, length}, at::kDouble);
    at::Tensor previous = none.clone(), induction = none.clone(), self = none.clone();
    if (length > 1) {
        previous.diagonal(-1).fill_(1);
        induction.narrow(1, 1, length - 1).copy_(same.narrow(1, 0, length - 1));
    }
    self.diagonal().fill_(1);
    return {previous, same, induction, self};
}

class Kinds {
public:
    Kinds(model::Model& model, const KindsOptions& options, store::AskRecord& record)
        : model_(model), options_(options), record_(record) {
        if (model.config().encoder)
            throw Error(ErrorCode::unsupported, "ask kinds", "expected a model of one stack",
                        "found an encoder with a decoder");
        if (model::places_of(Point::pattern, model.config(), model.sites()).empty())
            throw Error(ErrorCode::unsupported, "ask kinds", "expected a layer with an attention matrix",
                        "found none in " + model.config().family);
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
        const store::AskTable& table = record_.table(kind_table(kHeadKinds.size() - 1, true));
        const std::size_t size = table.values.size() / record_.sequences.size();
        const auto begin = table.values.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(s) * size);
        return std::any_of(begin, begin + static_cast<std::ptrdiff_t>(size),
                           [](double one) { return !std::isnan(one); });
    }

    /// Scores are stored when the pass has ended: a text has all of them, or none.
    void sequence(std::int64_t s, const Cancellation& cancellation) {
        const at::Tensor ids = ids_of(s);
        const std::array<at::Tensor, 4> places = detection_matrices(ids);
        std::vector<HeadScores> found;
        run(ids, nullptr, cancellation, [&](std::int64_t site, const at::Tensor& pattern) {
            for (std::int64_t head = 0; head < pattern.size(1); ++head) {
                found.push_back(score(pattern[0][head].to(at::kDouble), places));
                found.back().site = site;
                found.back().head = head;
            }
        });
        if (found.empty())
            throw Error(ErrorCode::unsupported, "ask kinds", "expected a layer with an attention matrix",
                        "found none in " + model_.config().family);
        for (const HeadScores& one : found)
            for (std::size_t kind = 0; kind < kHeadKinds.size(); ++kind) {
                put(record_, kind_table(kind, false), {s, one.site, one.head}, one.share.at(kind));
                put(record_, kind_table(kind, true), {s, one.site, one.head}, one.absolute.at(kind));
            }
    }

    /// Whole numbers of a file have -1 where there is none.
    bool has_retrieval() const { return get(record_, "/kinds/answer", {options_.generate - 1}) >= 0; }

    /// Stores all steps at the end.
    void retrieval(const Cancellation& cancellation, const std::function<void(std::int64_t step)>& step) {
        const at::Tensor text = ids_of(0);
        const std::int64_t length = text.size(0), needle = last_ - first_ + 1;
        const std::unique_ptr<model::Cache> cache = model_.new_cache();
        if (length > 1) forward(text.narrow(0, 0, length - 1), cache.get(), options_.editor, cancellation);
        at::Tensor token = text.narrow(0, length - 1, 1);
        std::map<std::int64_t, std::vector<double>> shares;  // by site and head
        std::vector<std::int64_t> answer;
        for (std::int64_t t = 0; t < options_.generate; ++t) {
            cancellation.check();
            std::map<std::int64_t, at::Tensor> largest;  // [H] key of the largest weight of the last row, by site
            at::Tensor hidden;
            run(
                token, cache.get(), cancellation,
                [&](std::int64_t site, const at::Tensor& pattern) {
                    largest[site] = pattern[0].select(1, pattern.size(2) - 1).argmax(1);
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
    at::Tensor ids_of(std::int64_t s) const {
        const auto& own = record_.sequences[static_cast<std::size_t>(s)].ids;
        return at::tensor(std::vector<std::int64_t>(own.begin(), own.end()), at::kLong);
    }

    at::Tensor forward(const at::Tensor& ids, model::Cache* cache, model::Editor* editor,
                       const Cancellation& cancellation) {
        model::Batch batch;
        batch.ids = ids.unsqueeze(0);
        model::ForwardOptions options;
        options.cache = cache;
        options.editor = editor;
        options.cancellation = &cancellation;
        return model_.forward(batch, options);
    }

    void run(const at::Tensor& ids, model::Cache* cache, const Cancellation& cancellation,
             const KindsReader::Read& read, at::Tensor* hidden = nullptr) {
        KindsReader reader(read);
        model::EditorChain both(options_.editor ? std::vector<model::Editor*>{options_.editor, &reader}
                                                : std::vector<model::Editor*>{&reader});
        const at::Tensor last = forward(ids, cache, &both, cancellation);
        if (hidden) *hidden = last;
    }

    HeadScores score(const at::Tensor& weights, const std::array<at::Tensor, 4>& places) const {
        const auto exclude = [this](const at::Tensor& matrix) {
            if (options_.exclude_first) matrix.select(1, 0).zero_();
            if (options_.exclude_current) matrix.diagonal().zero_();
            return matrix;
        };
        const at::Tensor all = exclude(weights.clone());
        const double sum = all.sum().item<double>(), length = static_cast<double>(weights.size(0));
        HeadScores found;
        for (std::size_t kind = 0; kind < places.size(); ++kind) {
            found.share.at(kind) = (all * places[kind]).sum().item<double>() / sum;
            found.absolute.at(kind) = 1 - exclude((weights - places[kind]).abs()).sum().item<double>() / length;
        }
        return found;
    }

    void check_needle() {
        const auto refuse = [](const char* option, const std::string& expected, const std::string& found) {
            throw Error(ErrorCode::usage, option, "expected " + expected, "found " + found);
        };
        if (!model_.has_head() || !model_.causal())
            refuse("--needle", "a decoder with a head for the vocabulary", "another model");
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
    for (std::int64_t s = 0; s < texts; ++s) {
        cancellation.check();
        progress.advance(static_cast<double>(s), all, "text " + std::to_string(s + 1) + " of " + std::to_string(texts));
        if (kinds.done(s)) continue;
        kinds.sequence(s, cancellation);
        if (options.saved) options.saved();
    }
    if (steps > 0 && !kinds.has_retrieval())
        kinds.retrieval(cancellation, [&](std::int64_t step) {
            progress.advance(static_cast<double>(texts + step + 1), all, "retrieval");
        });
    record.complete = true;
}

}  // namespace headscope::ask

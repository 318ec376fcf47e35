// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/generation.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <span>

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>

#include "core/ask/answers.h"
#include "core/ask/sweep.h"
#include "core/base/error.h"
#include "core/model/edits/intervention.h"
#include "core/model/generate/generate.h"
#include "core/model/generate/sampling.h"
#include "core/model/model.h"
#include "core/model/towers/cache.h"

namespace headscope::ask {
namespace {

using model::Point;
using model::PointKey;

constexpr std::int64_t kMostWeights = 200'000'000;  // numbers of /generate/weights

class Generation {
public:
    Generation(model::Model& model, const GenerationOptions& options, store::AskRecord& record)
        : model_(model), options_(options), record_(record) {
        for (const PointKey& key : model::places_of(Point::pattern, model.config(), model.sites())) places_.insert(key);
    }

    void sequence(std::int64_t s, const Cancellation& cancellation, const std::function<void()>& step) {
        const auto& own = record_.sequences[static_cast<std::size_t>(s)].ids;
        const std::vector<std::int64_t> prompt(own.begin(), own.end());
        const std::unique_ptr<model::Cache> cache = model_.new_cache();
        model::ForwardOptions forward;
        forward.cache = cache.get();
        forward.cancellation = &cancellation;
        const auto pass = [&](std::span<const std::int64_t> ids, model::Editor* editor) {
            model::Batch batch;
            batch.ids = at::tensor(std::vector<std::int64_t>(ids.begin(), ids.end()), at::kLong).unsqueeze(0);
            forward.editor = editor;
            return model_.forward(batch, forward);
        };
        const std::span<const std::int64_t> all(prompt);
        if (all.size() > 1) pass(all.first(all.size() - 1), options_.editor);
        model::Random random(options_.seed + static_cast<std::uint64_t>(s));
        std::int64_t token = prompt.back();
        for (std::int64_t t = 0; t < options_.tokens; ++t) {
            model::PointRecorder recorder(places_);
            model::EditorChain both({options_.editor, &recorder});
            const at::Tensor hidden = pass({&token, 1}, places_.empty() ? options_.editor : &both);
            for (const auto& [key, pattern] : recorder.values) row(s, t, key, pattern, std::ssize(prompt) + t);
            token = choose(s, t, model_.logits(hidden[0]).contiguous(), random);
            step();
            const auto& ends = options_.end_tokens;
            if (std::find(ends.begin(), ends.end(), token) != ends.end()) break;
        }
        put(record_, "/generate/done", {s}, 1);
    }

private:
    /// Stores the step's distribution; returns the next token.
    std::int64_t choose(std::int64_t s, std::int64_t t, const at::Tensor& logits, model::Random& random) {
        const std::span<const float> row(logits.const_data_ptr<float>(), static_cast<std::size_t>(logits.numel()));
        if (std::any_of(row.begin(), row.end(), [](float one) { return std::isnan(one); }))
            throw Error(ErrorCode::limit, "logits", "expected numbers for every entry of the vocabulary",
                        "found NaN at step " + std::to_string(t));
        std::int64_t token = model::choose_token(row, options_.temperature, 0, 1, random);
        if (const auto other = options_.replaced.find(t); other != options_.replaced.end()) token = other->second;
        const at::Tensor logs = at::log_softmax(logits[0].to(at::kDouble), 0);
        const std::span<const double> log(logs.const_data_ptr<double>(), row.size());
        put(record_, "/generate/token", {s, t}, static_cast<double>(token));
        put(record_, "/generate/log_probability", {s, t}, log[static_cast<std::size_t>(token)]);
        std::vector<std::int64_t> order(row.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
        const auto count = std::min<std::size_t>(static_cast<std::size_t>(options_.top), order.size());
        std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                          [&](std::int64_t a, std::int64_t b) {
                              const double x = log[static_cast<std::size_t>(a)], y = log[static_cast<std::size_t>(b)];
                              return x > y || (x == y && a < b);
                          });
        for (std::size_t k = 0; k < count; ++k) {
            const std::vector<std::int64_t> index{s, t, static_cast<std::int64_t>(k)};
            put(record_, "/generate/top_id", index, static_cast<double>(order[k]));
            put(record_, "/generate/top_probability", index, std::exp(log[static_cast<std::size_t>(order[k])]));
        }
        return token;
    }

    /// Indicators of one row [1, H, 1, keys], of `tokens` that it may see: without a window's forgotten ones, the last.
    /// Weights are copied a head's row at a time.
    void row(std::int64_t s, std::int64_t t, const PointKey& key, const at::Tensor& pattern, std::int64_t tokens) {
        const at::Tensor rows = pattern[0].select(1, 0).to(at::kDouble).contiguous();
        const std::int64_t keys = rows.size(1), first = tokens - keys;
        store::AskTable* const maps = options_.maps ? &answer_table(record_, "/generate/weights") : nullptr;
        for (std::int64_t h = 0; h < rows.size(0); ++h) {
            const std::span<const double> weights(rows.const_data_ptr<double>() + h * keys,
                                                  static_cast<std::size_t>(keys));
            double entropy = 0, distance = 0;
            for (std::int64_t j = 0; j < keys; ++j) {
                const double a = weights[static_cast<std::size_t>(j)];
                if (a > 0) entropy -= a * std::log(a);
                distance += a * static_cast<double>(keys - 1 - j);
            }
            if (maps != nullptr)
                std::copy(weights.begin(), weights.end(),
                          maps->values.begin() +
                              static_cast<std::ptrdiff_t>(cell_of(record_, *maps, {s, t, key.site, h, first})));
            put(record_, "/generate/entropy", {s, t, key.site, h}, entropy);
            put(record_, "/generate/sink", {s, t, key.site, h}, first == 0 ? weights.front() : 0);
            put(record_, "/generate/mean_distance", {s, t, key.site, h}, distance);
        }
    }

    model::Model& model_;
    const GenerationOptions& options_;
    store::AskRecord& record_;
    std::set<PointKey> places_;
};

void check_generation(const model::Model& model, const GenerationOptions& options, const store::AskRecord& record) {
    for (const auto& [step, token] : options.replaced) {
        if (step < 0 || step >= options.tokens)
            throw Error(ErrorCode::usage, "--replace", "expected steps from 0 to " + std::to_string(options.tokens - 1),
                        "found " + std::to_string(step));
        if (token < 0 || token >= model.config().vocabulary)
            throw Error(ErrorCode::usage, "--replace",
                        "expected tokens from 0 to " + std::to_string(model.config().vocabulary - 1),
                        "found " + std::to_string(token));
    }
    if (model.config().encoder)
        throw Error(ErrorCode::unsupported, "ask generate", "expected a decoder", "found an encoder-decoder");
    for (const store::SequenceTokens& text : record.sequences) {
        const std::vector<std::int64_t> prompt(text.ids.begin(), text.ids.end());
        model::GenerateOptions checked;
        checked.tokens = options.tokens;
        checked.temperature = options.temperature;
        model::check_prompt(model, prompt, checked);
        const std::int64_t room = model::room_for_tokens(model.config(), std::ssize(prompt), false);
        if (options.tokens > room)
            throw Error(ErrorCode::limit, "--generate",
                        "expected at most " + std::to_string(room) + " tokens, as the model has positions for",
                        "found " + std::to_string(options.tokens));
    }
}

}  // namespace

void run_generation(model::Model& model, const GenerationOptions& options, store::AskRecord& record, Progress& progress,
                    const Cancellation& cancellation) {
    check_generation(model, options, record);
    const std::int64_t keys = record.size_of("/token") + options.tokens - 1;
    record.add_dimension("/step", options.tokens, "generated token, counted from 0");
    record.add_dimension("/top", options.top, "place among the likeliest tokens, from 0");
    if (options.maps) {
        const double numbers = static_cast<double>(record.sequences.size()) * static_cast<double>(options.tokens) *
                               static_cast<double>(record.size_of("/site") * record.size_of("/head") * keys);
        if (numbers > static_cast<double>(kMostWeights))
            throw Error(ErrorCode::limit, "--record maps",
                        "expected at most " + std::to_string(kMostWeights) + " weights in a file",
                        "found " + std::to_string(static_cast<std::int64_t>(numbers)));
        record.add_dimension("/key_token", keys, "key, counted from 0");
    }
    if (record.tables.empty()) {
        const std::vector<std::string> steps{"/sequence", "/step"}, tops{"/sequence", "/step", "/top"};
        const std::vector<std::string> heads{"/sequence", "/step", "/site", "/head"};
        record.add_table("/generate/done", {"/sequence"}, "1: the text is generated", "", true);
        record.add_table("/generate/token", steps, "generated token", store::kTokenUnits, true);
        record.add_table("/generate/log_probability", steps, "natural logarithm of its probability");
        record.add_table("/generate/top_id", tops, "likeliest tokens", store::kTokenUnits, true);
        record.add_table("/generate/top_probability", tops, "their probabilities");
        record.add_table("/generate/entropy", heads, "entropy of the row that led to the token", "nat");
        record.add_table("/generate/sink", heads, "weight of the first token in that row");
        record.add_table("/generate/mean_distance", heads, "mean distance of that row", "token");
        if (options.maps)
            record.add_table("/generate/weights", {"/sequence", "/step", "/site", "/head", "/key_token"},
                             "weights of that row");
    }
    Generation generation(model, options, record);
    const auto texts = std::ssize(record.sequences);
    double done = 0;
    for (std::int64_t s = 0; s < texts; ++s) {
        if (get(record, "/generate/done", {s}) == 1) continue;
        generation.sequence(s, cancellation, [&] {
            progress.advance(++done, static_cast<double>(texts * options.tokens), text_label(record, s));
        });
        if (options.saved) options.saved();
    }
    record.complete = true;
}

}  // namespace headscope::ask

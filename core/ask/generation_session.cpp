// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/generation_session.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>

#include "core/ask/answers.h"
#include "core/base/error.h"
#include "core/model/edits/intervention.h"
#include "core/model/generate/generate.h"
#include "core/model/model.h"
#include "core/model/towers/cache.h"
#include "core/store/ask/ask_file.h"

namespace headscope::ask {
namespace {

constexpr std::int64_t kSnapshotEvery = 16;  // tokens
constexpr std::size_t kMostSnapshots = 3;    // the prompt's and the last two

Error bad_step(const std::string& expected, const std::string& found) {
    return {ErrorCode::usage, "ask generate", expected, found};
}

}  // namespace

void check_continuation(const model::Model& model, std::span<const std::int64_t> prompt,
                        std::span<const std::int64_t> target, double temperature, std::int64_t tokens,
                        const char* where) {
    model::GenerateOptions checked;
    checked.tokens = tokens;
    checked.temperature = temperature;
    model::check_prompt(model, prompt, checked);
    const std::int64_t read =
        model.config().encoder ? std::max<std::int64_t>(1, std::ssize(target)) : std::ssize(prompt);
    const std::int64_t room = model::room_for_tokens(model.config(), read, false);
    if (tokens > room)
        throw Error(ErrorCode::limit, where,
                    "expected at most " + std::to_string(room) + " tokens, as the model has positions for",
                    "found " + std::to_string(tokens));
}

GenerationSession::GenerationSession(model::Model& model, SessionOptions options, std::vector<std::int64_t> prompt,
                                     std::vector<std::int64_t> target)
    : model_(&model), options_(std::move(options)), prompt_(std::move(prompt)) {
    check_continuation(model, prompt_, target, options_.temperature, 1, "ask generate");
    if (model.config().encoder) {
        if (target.empty()) target = {model.config().decoder_start};
        source_ = std::exchange(prompt_, std::move(target));
    }
    for (const model::PointKey& key : model::places_of(model::Point::pattern, model.config(), model.sites()))
        if (model.sites()[static_cast<std::size_t>(key.site)].stack != "encoder") places_.insert(key);
    draws_.emplace_back(options_.seed);
}

GenerationSession::~GenerationSession() = default;

bool GenerationSession::ended() const {
    const auto& ends = options_.end_tokens;
    return !steps_.empty() && std::find(ends.begin(), ends.end(), steps_.back().token) != ends.end();
}

std::int64_t GenerationSession::room() const {
    return model::room_for_tokens(model_->config(), std::ssize(prompt_) + std::ssize(steps_), false);
}

std::int64_t GenerationSession::token_at(std::int64_t position) const {
    const std::int64_t own = position - std::ssize(prompt_);
    return own < 0 ? prompt_[static_cast<std::size_t>(position)] : steps_[static_cast<std::size_t>(own)].token;
}

void GenerationSession::check_token(std::int64_t token) const {
    const std::int64_t vocabulary = model_->config().vocabulary;
    if (token < 0 || token >= vocabulary)
        throw bad_step("expected tokens from 0 to " + std::to_string(vocabulary - 1), "found " + std::to_string(token));
}

at::Tensor GenerationSession::pass(std::span<const std::int64_t> ids, model::Editor* editor,
                                   const Cancellation& cancellation) {
    const auto row_of = [](std::span<const std::int64_t> tokens) {
        return at::tensor(std::vector<std::int64_t>(tokens.begin(), tokens.end()), at::kLong).unsqueeze(0);
    };
    model::Batch batch;
    (source_.empty() ? batch.ids : batch.target) = row_of(ids);
    if (!source_.empty() && cache_->length() == 0) batch.ids = row_of(source_);
    model::ForwardOptions forward;
    forward.cache = cache_.get();
    forward.cancellation = &cancellation;
    forward.editor = editor;
    return model_->forward(batch, forward);
}

/// Patterns are recorded by every such pass, also without a step that takes them: to record them may choose another
/// kernel, and a token that is read once more has to give the same bits.
at::Tensor GenerationSession::pass_of_one(std::int64_t token, GeneratedStep* step, const Cancellation& cancellation) {
    model::PointRecorder recorder(places_);
    model::EditorChain both({options_.editor, &recorder});
    at::Tensor hidden = pass({&token, 1}, places_.empty() ? options_.editor : &both, cancellation);
    if (step)
        for (const auto& [key, pattern] : recorder.values)
            step->rows.push_back(measured(key, pattern, cache_->length()));
    return hidden;
}

void GenerationSession::snapshot() {
    if (cache_->can_drop(1)) return;
    if (!snapshots_.empty() && snapshots_.back()->length() >= cache_->length()) return;
    if (snapshots_.size() == kMostSnapshots) snapshots_.erase(snapshots_.begin() + 1);
    snapshots_.push_back(cache_->clone());
}

/// Leaves the first `length` tokens in the cache, or no cache if it cannot drop the later ones. A source is read with
/// the first token.
void GenerationSession::cut_cache(std::int64_t length) {
    const std::int64_t more = cache_->length() - length;
    const bool reads_source = length == 0 && !source_.empty();
    if (!reads_source && cache_->can_drop(more))
        cache_->drop(more);
    else
        cache_.reset();
}

/// Leaves a cache of the first `length` tokens, made by the passes that generation makes: the prompt's but for its last
/// token at once, the others one by one.
void GenerationSession::read_up_to(std::int64_t length, const Cancellation& cancellation) {
    if (cache_ && cache_->spoiled()) cache_.reset();
    if (cache_ && cache_->length() > length) cut_cache(length);
    if (!cache_ && !snapshots_.empty()) cache_ = snapshots_.back()->clone();
    if (!cache_) {
        cache_ = model_->new_cache();
        const std::span<const std::int64_t> all(prompt_);
        if (all.size() > 1) {
            pass(all.first(all.size() - 1), options_.editor, cancellation);
            snapshot();
        }
    }
    while (cache_->length() < length) {
        pass_of_one(token_at(cache_->length()), nullptr, cancellation);
        if ((cache_->length() - std::ssize(prompt_) + 1) % kSnapshotEvery == 0) snapshot();
    }
}

const GeneratedStep& GenerationSession::step(const Cancellation& cancellation, std::optional<std::int64_t> given) {
    if (ended()) throw bad_step("expected a text without an end token", "found one as its last token");
    if (room() < 1)
        throw Error(ErrorCode::limit, "ask generate", "expected room for a token", "found no position left");
    if (given) check_token(*given);
    const std::int64_t last = std::ssize(prompt_) + std::ssize(steps_) - 1;
    read_up_to(last, cancellation);
    GeneratedStep made;
    const at::Tensor hidden = pass_of_one(token_at(last), &made, cancellation);
    model::Random random = draws_.back();
    choose(made, model_->logits(hidden[0]).contiguous(), random, given);
    if ((std::ssize(steps_) + 1) % kSnapshotEvery == 0) snapshot();
    steps_.push_back(std::move(made));
    draws_.push_back(random);
    return steps_.back();
}

void GenerationSession::keep(std::int64_t count) {
    if (count < 0 || count > std::ssize(steps_))
        throw bad_step("expected steps from 0 to " + std::to_string(steps_.size()), "found " + std::to_string(count));
    steps_.resize(static_cast<std::size_t>(count));
    draws_.erase(draws_.begin() + count + 1, draws_.end());
    const std::int64_t read = std::ssize(prompt_) - 1 + count;  // tokens before the last one
    std::erase_if(snapshots_, [&](const auto& one) { return one->length() > read; });
    if (cache_ && !cache_->spoiled() && cache_->length() > read) cut_cache(read);
}

const GeneratedStep& GenerationSession::replace(std::int64_t at, std::int64_t token, const Cancellation& cancellation) {
    if (at < 0 || at >= std::ssize(steps_))
        throw bad_step("expected steps below " + std::to_string(steps_.size()), "found " + std::to_string(at));
    check_token(token);
    keep(at);
    return step(cancellation, token);
}

void GenerationSession::rebind(model::Model& model, model::Editor* editor) {
    model_ = &model;
    options_.editor = editor;
    cache_.reset();
    snapshots_.clear();
}

/// Indicators of one row [1, H, 1, keys], of `tokens` that it may see: without a window's forgotten ones, the last. A
/// row of cross-attention is of the source.
GeneratedRow GenerationSession::measured(const model::PointKey& key, const at::Tensor& pattern,
                                         std::int64_t tokens) const {
    const at::Tensor rows = pattern[0].select(1, 0).to(at::kDouble).contiguous();
    GeneratedRow row;
    row.site = key.site;
    row.keys = rows.size(1);
    const bool cross = model_->sites()[static_cast<std::size_t>(key.site)].is_cross();
    row.first_key = cross ? 0 : tokens - row.keys;
    for (std::int64_t h = 0; h < rows.size(0); ++h) {
        const std::span<const double> weights(rows.const_data_ptr<double>() + h * row.keys,
                                              static_cast<std::size_t>(row.keys));
        double entropy = 0, distance = 0;
        for (std::int64_t j = 0; j < row.keys; ++j) {
            const double a = weights[static_cast<std::size_t>(j)];
            if (a > 0) entropy -= a * std::log(a);
            distance += a * static_cast<double>(row.keys - 1 - j);
            if (options_.maps) row.weights.push_back(static_cast<float>(a));
        }
        row.entropy.push_back(entropy);
        row.sink.push_back(row.first_key == 0 ? weights.front() : 0);
        row.mean_distance.push_back(cross ? std::nan("") : distance);
    }
    return row;
}

/// Fills in the step's distribution and its token.
void GenerationSession::choose(GeneratedStep& step, const at::Tensor& logits, model::Random& random,
                               std::optional<std::int64_t> given) const {
    const std::span<const float> row(logits.const_data_ptr<float>(), static_cast<std::size_t>(logits.numel()));
    if (std::any_of(row.begin(), row.end(), [](float one) { return std::isnan(one); }))
        throw Error(ErrorCode::limit, "logits", "expected numbers for every entry of the vocabulary",
                    "found NaN at step " + std::to_string(steps_.size()));
    step.token = model::choose_token(row, options_.temperature, 0, 1, random);
    step.replaced = given.has_value();
    if (given) step.token = *given;
    const at::Tensor logs = at::log_softmax(logits[0].to(at::kDouble), 0);
    const std::span<const double> log(logs.const_data_ptr<double>(), row.size());
    step.log_probability = log[static_cast<std::size_t>(step.token)];
    std::vector<std::int64_t> order(row.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
    const auto count = std::min<std::size_t>(static_cast<std::size_t>(options_.top), order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                      [&](std::int64_t a, std::int64_t b) {
                          const double x = log[static_cast<std::size_t>(a)], y = log[static_cast<std::size_t>(b)];
                          return x > y || (x == y && a < b);
                      });
    order.resize(count);
    for (const std::int64_t id : order) step.top_probability.push_back(std::exp(log[static_cast<std::size_t>(id)]));
    step.top_id = std::move(order);
}

void put_step(store::AskRecord& record, std::int64_t sequence, std::int64_t step, const GeneratedStep& value) {
    put(record, "/generate/token", {sequence, step}, static_cast<double>(value.token));
    put(record, "/generate/log_probability", {sequence, step}, value.log_probability);
    for (std::int64_t k = 0; k < std::ssize(value.top_id); ++k) {
        const auto at = static_cast<std::size_t>(k);
        put(record, "/generate/top_id", {sequence, step, k}, static_cast<double>(value.top_id[at]));
        put(record, "/generate/top_probability", {sequence, step, k}, value.top_probability[at]);
    }
    for (const GeneratedRow& row : value.rows) {
        for (std::int64_t h = 0; h < std::ssize(row.entropy); ++h) {
            const auto at = static_cast<std::size_t>(h);
            const std::vector<std::int64_t> head{sequence, step, row.site, h};
            put(record, "/generate/entropy", head, row.entropy[at]);
            put(record, "/generate/sink", head, row.sink[at]);
            put(record, "/generate/mean_distance", head, row.mean_distance[at]);
            if (row.weights.empty()) continue;
            store::AskTable& maps = answer_table(record, "/generate/weights");
            const auto own = row.weights.begin() + static_cast<std::ptrdiff_t>(h * row.keys);
            const auto begin = cell_of(record, maps, {sequence, step, row.site, h, row.first_key});
            std::copy(own, own + static_cast<std::ptrdiff_t>(row.keys),
                      maps.values.begin() + static_cast<std::ptrdiff_t>(begin));
        }
    }
}

}  // namespace headscope::ask

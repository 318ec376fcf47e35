// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/generation.h"

#include <optional>
#include <string>

#include "core/ask/answers.h"
#include "core/ask/sweep.h"
#include "core/base/error.h"
#include "core/model/model.h"

namespace headscope::ask {
namespace {

constexpr std::int64_t kMostWeights = 200'000'000;  // numbers of /generate/weights

std::vector<std::int64_t> ids_of(const store::SequenceTokens& text) {
    return {text.ids.begin(), text.ids.end()};
}

/// The decoder's input of an encoder-decoder; empty: one stack.
std::vector<std::int64_t> target_of(const store::SequenceTokens& text) {
    return text.target ? ids_of(*text.target) : std::vector<std::int64_t>();
}

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
    for (const store::SequenceTokens& text : record.sequences)
        check_continuation(model, ids_of(text), target_of(text), options.temperature, options.tokens, "--generate");
}

/// A token in place of one that no text comes to changes nothing.
void check_replaced_steps(const GenerationOptions& options, const store::AskRecord& record) {
    for (const auto& [step, token] : options.replaced) {
        bool reached = false;
        for (std::int64_t s = 0; s < std::ssize(record.sequences); ++s)
            reached = reached || get(record, "/generate/token", {s, step}) >= 0;
        if (!reached)
            throw Error(ErrorCode::usage, "--replace", "expected a step that a text has before its end token",
                        "found " + std::to_string(step));
    }
}

}  // namespace

void add_generation_tables(store::AskRecord& record, std::int64_t tokens, std::int64_t top, bool maps) {
    const std::int64_t keys = record.size_of("/token") + tokens - 1;
    record.add_dimension("/step", tokens, "generated token, counted from 0");
    record.add_dimension("/top", top, "place among the likeliest tokens, from 0");
    if (maps) {
        const double numbers = static_cast<double>(record.sequences.size()) * static_cast<double>(tokens) *
                               static_cast<double>(record.size_of("/site") * record.size_of("/head") * keys);
        if (numbers > static_cast<double>(kMostWeights))
            throw Error(ErrorCode::limit, "--record maps",
                        "expected at most " + std::to_string(kMostWeights) + " weights in a file",
                        "found " + std::to_string(static_cast<std::int64_t>(numbers)));
        record.add_dimension("/key_token", keys, "key, counted from 0");
    }
    if (!record.tables.empty()) return;
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
    if (maps)
        record.add_table("/generate/weights", {"/sequence", "/step", "/site", "/head", "/key_token"},
                         "weights of that row");
}

void put_generation(store::AskRecord& record, std::int64_t sequence, std::span<const GeneratedStep> steps) {
    for (std::int64_t t = 0; t < std::ssize(steps); ++t)
        put_step(record, sequence, t, steps[static_cast<std::size_t>(t)]);
    put(record, "/generate/done", {sequence}, 1);
}

void run_generation(model::Model& model, const GenerationOptions& options, store::AskRecord& record, Progress& progress,
                    const Cancellation& cancellation) {
    check_generation(model, options, record);
    add_generation_tables(record, options.tokens, options.top, options.maps);
    const auto texts = std::ssize(record.sequences);
    double done = 0;
    for (std::int64_t s = 0; s < texts; ++s) {
        if (get(record, "/generate/done", {s}) == 1) continue;
        SessionOptions own = options;
        own.seed += static_cast<std::uint64_t>(s);
        const store::SequenceTokens& text = record.sequences[static_cast<std::size_t>(s)];
        GenerationSession session(model, own, ids_of(text), target_of(text));
        for (std::int64_t t = 0; t < options.tokens && !session.ended(); ++t) {
            const auto other = options.replaced.find(t);
            session.step(cancellation, other == options.replaced.end() ? std::nullopt : std::optional(other->second));
            progress.advance(++done, static_cast<double>(texts * options.tokens), text_label(record, s));
        }
        put_generation(record, s, session.steps());
        if (options.saved) options.saved();
    }
    check_replaced_steps(options, record);
    record.complete = true;
}

}  // namespace headscope::ask

// SPDX-License-Identifier: GPL-3.0-or-later
// Checks, then the operators' rows of kernels/operators.h.
#include "kernels/recurrent.h"

#include <cmath>
#include <string>

#include "kernels/backend.h"
#include "kernels/check_recurrent.h"
#include "kernels/operators.h"
#include "kernels/score_pairs.h"

namespace headscope::kernels {
namespace {

void expect(bool condition, const char* where, const std::string& expected, const std::string& found) {
    if (!condition) throw Error(where, expected, found);
}

std::string text_of(std::int64_t batch, std::int64_t heads, std::int64_t length, std::int64_t size) {
    return "[" + std::to_string(batch) + ", " + std::to_string(heads) + ", " + std::to_string(length) + ", " +
           std::to_string(size) + "]";
}

void check_view(const TensorView& view, const char* where, const TensorView& key, std::int64_t heads,
                std::int64_t size) {
    expect(view.data != nullptr, where, "data", "a null pointer");
    expect(view.batch == key.batch && view.heads == heads && view.length == key.length && view.size == size, where,
           text_of(key.batch, heads, key.length, size), text_of(view.batch, view.heads, view.length, view.size));
    expect(view.device == key.device, "device", "one for all views", "several");
}

void check_single(const TensorView& view, const char* where) {
    expect(view.type == ElementType::float32, where, "float32", "another type");
}

void check_chunks(const RecurrentRule& rule, const TensorView& key, std::int64_t heads) {
    expect(rule.chunk_size >= 0, "chunk size", "at least 0", std::to_string(rule.chunk_size));
    if (rule.chunk_size == 0) return;
    expect(rule.chunk_begin >= 0 && rule.chunk_begin < rule.chunk_size, "chunk begin",
           "from 0 to less than the chunk size, " + std::to_string(rule.chunk_size), std::to_string(rule.chunk_begin));
    const std::int64_t chunks = (rule.chunk_begin + key.length - 1) / rule.chunk_size + 1;
    expect(rule.chunks == chunks, "chunks", std::to_string(chunks), std::to_string(rule.chunks));
    expect(rule.kept.size() == static_cast<std::size_t>(key.batch * heads * chunks), "kept",
           std::to_string(key.batch * heads * chunks) + " factors [batch, heads, chunks]",
           std::to_string(rule.kept.size()));
}

/// The text must begin in this call.
void check_begins(const RecurrentInput& input) {
    check_recurrent(input, false);
    const RecurrentRule& rule = *input.rule;
    expect(rule.chunk_size == 0 || rule.chunk_begin == 0, "chunk begin", "0, for a text that begins",
           std::to_string(rule.chunk_begin));
    expect(input.direct == nullptr || rule.chunk_size == 0, "direct", "none where there are chunks", "some");
}

}  // namespace

void check_recurrent(const RecurrentInput& input, bool with_value) {
    expect(input.rule != nullptr, "rule", "a rule", "a null pointer");
    const RecurrentRule& rule = *input.rule;
    const TensorView &key = input.key, &value = input.value;
    ScoreRule scores;
    scores.scale = rule.scale;
    check_attention({input.query, key, {}, &scores, nullptr}, false);
    check_view(input.query, "query", key, key.heads, key.size);
    expect(value.heads >= 1 && value.heads % key.heads == 0, "value",
           "a multiple of " + std::to_string(key.heads) + " key heads", std::to_string(value.heads) + " heads");
    if (with_value) {
        expect(value.size >= 1, "value", "a size of at least 1", std::to_string(value.size));
        check_view(value, "value", key, value.heads, value.size);
        expect(value.type == ElementType::float32 || value.type == ElementType::bfloat16, "value",
               "float32 or bfloat16", "element type " + std::to_string(static_cast<int>(value.type)));
    }
    if (input.write.data != nullptr) {
        check_view(input.write, "write", key, value.heads, 1);
        check_single(input.write, "write");
    }
    if (rule.decay == Decay::none) {
        expect(input.log_decay.data == nullptr, "log decay", "none, as the rule says", "some");
    } else {
        check_view(input.log_decay, "log decay", key, value.heads, rule.decay == Decay::head ? 1 : key.size);
        check_single(input.log_decay, "log decay");
    }
    check_chunks(rule, key, value.heads);
    expect(rule.length.empty() || rule.length.size() == static_cast<std::size_t>(key.batch), "length",
           std::to_string(key.batch) + " lengths, or none", std::to_string(rule.length.size()));
    for (const std::int64_t length : rule.length)
        expect(length >= 0 && length <= key.length, "length", "from 0 to " + std::to_string(key.length),
               std::to_string(length));
}

std::int64_t recurrent_pieces(const RecurrentRule& rule, std::int64_t length) {
    std::int64_t pieces = 0;
    for (std::int64_t token = 0; token < length; token = recurrent_piece_end(rule, token, length)) ++pieces;
    return pieces;
}

void recurrent_forward(const RecurrentInput& input, const MutableView& output, const RecurrentState& state,
                       float* pieces) {
    check_recurrent(input);
    expect(output.data != nullptr, "output", "a place for it", "a null pointer");
    const RecurrentRule& rule = *input.rule;
    const bool chunks = rule.chunk_size > 0, goes_on = state.now != nullptr;
    expect((state.start != nullptr) == (goes_on && chunks), "state at the chunk's start",
           "one beside the state where there are chunks, else none", state.start == nullptr ? "none" : "one");
    expect((state.decay != nullptr) == (goes_on && chunks && rule.decay != Decay::none), "decay of the open chunk",
           "a sum beside the state where there are chunks and decay, else none",
           state.decay == nullptr ? "none" : "one");
    expect(goes_on || !chunks || rule.chunk_begin == 0, "state", "one, as tokens of the first chunk came before",
           "none");
    kRecurrentForward(input.key.device, input, output, state, pieces);
}

void implicit_weights(const RecurrentInput& input, std::int64_t b, std::int64_t h, std::int64_t q_begin,
                      std::int64_t q_end, std::int64_t k_begin, std::int64_t k_end, float* out) {
    check_begins(input);
    const std::int64_t length = input.key.length;
    const auto inside = [](std::int64_t begin, std::int64_t end, std::int64_t all) {
        return begin >= 0 && begin <= end && end <= all;
    };
    expect(b >= 0 && b < input.key.batch && h >= 0 && h < input.value.heads, "head",
           "one of " + text_of(input.key.batch, input.value.heads, length, input.key.size),
           std::to_string(h) + " of sequence " + std::to_string(b));
    expect(inside(q_begin, q_end, length) && inside(k_begin, k_end, length), "tile",
           "within " + std::to_string(length) + " tokens", text_of(q_begin, q_end, k_begin, k_end));
    expect(out != nullptr, "output", "a place for it", "a null pointer");
    cpu::implicit_weights_cpu(input, b, h, q_begin, q_end, k_begin, k_end, out);
}

void implicit_statistics(const RecurrentInput& input, ImplicitStatistics& statistics, float* dense) {
    check_begins(input);
    kImplicitStatistics(input.key.device, input, &statistics, dense);
}

}  // namespace headscope::kernels

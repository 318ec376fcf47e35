// SPDX-License-Identifier: GPL-3.0-or-later
// RULER's retrieval tasks (core/data/ruler) as text to train on: ids are bytes and the end of a text. A sequence is a
// prompt as full of hay as fits, its answer, which is what counts, and the end of the text up to the sequence's own.
#include <algorithm>

#include "core/data/generators/generators.h"
#include "core/data/ruler/ruler.h"

namespace headscope::data {
namespace {

constexpr std::int64_t end_of_sequence = 256;
/// Texts that a length must have room for, so that words as long as any are among them.
constexpr std::uint64_t samples = 64;

using Draw = std::function<std::unique_ptr<RulerDraw>(Random&)>;

std::string answer_of(const RulerText& text) {
    std::string answer;
    for (const std::string& output : text.outputs) answer += (answer.empty() ? " " : ", ") + output;
    return answer;
}

class RulerSource final : public GeneratedSource {
public:
    RulerSource(std::int64_t length, const RulerTask& task, Draw draw, std::int64_t hint, Split split,
                std::uint64_t seed)
        : GeneratedSource(length, end_of_sequence + 1, split, seed), task_(task), draw_(std::move(draw)), hint_(hint) {}

    static std::int64_t tokens(const RulerTask& task, const RulerText& text) {
        return std::ssize(ruler_prompt(task, text.input, text.gen_prefix)) + std::ssize(answer_of(text));
    }

private:
    void fill(Random& random, std::int64_t* ids, std::int64_t* targets) const override {
        RulerText text;
        // At a length that barely fits, some texts are too long: others replace them.
        for (std::int64_t units = -1; units < 0;) {
            const auto drawn = draw_(random);
            units = most_units(*drawn, hint_, [this](const RulerText& t) { return tokens(task_, t) <= length(); });
            if (units >= 0) text = drawn->text(units);
        }
        const std::string prompt = ruler_prompt(task_, text.input, text.gen_prefix), answer = answer_of(text);
        const std::string whole = prompt + answer;
        const auto at = [&](std::int64_t place) -> std::int64_t {
            if (place >= std::ssize(whole)) return end_of_sequence;
            return static_cast<unsigned char>(whole[static_cast<std::size_t>(place)]);
        };
        for (std::int64_t i = 0; i < length(); ++i) {
            ids[i] = at(i);
            if (i + 1 >= std::ssize(prompt) && i < std::ssize(whole)) targets[i] = at(i + 1);
        }
    }

    const RulerTask& task_;
    Draw draw_;
    std::int64_t hint_;
};

Generator make_ruler(const GeneratorOptions& options, std::int64_t length, const std::string& task_name, Draw draw) {
    const RulerTask& task = *find_ruler_task(task_name);
    std::int64_t needed = 0;
    for (std::uint64_t i = 0; i < samples; ++i) {
        Random random(0, i);
        const auto drawn = draw(random);
        needed = std::max(needed, RulerSource::tokens(task, drawn->text(drawn->least())));
    }
    options.need_length(needed, length);
    Random random(0, 0);
    const std::int64_t hint =
        most_units(*draw(random), 0, [&](const RulerText& text) { return RulerSource::tokens(task, text) <= length; });
    Generator out;
    out.bytes = true;
    add_pieces(out.pieces, "byte", end_of_sequence);
    out.pieces.emplace_back("end");
    out.make = [=, &task](Split split, std::uint64_t seed) {
        return std::make_unique<RulerSource>(length, task, draw, hint, split, seed);
    };
    return out;
}

}  // namespace

Generator make_niah(const GeneratorOptions& options, std::int64_t length) {
    NiahShape shape;
    shape.hay = options.whole("hay") == 0 ? RulerHay::lines : RulerHay::needles;
    shape.key_count = options.whole("keys");
    shape.values_each = options.whole("values");
    shape.asked = options.whole("queries");
    shape.digits = options.whole("digits");
    if (shape.asked > shape.key_count)
        options.refuse(
            "expected at least as many keys as queries",
            "found " + std::to_string(shape.key_count) + " keys and " + std::to_string(shape.asked) + " queries");
    if (shape.digits == 1 && shape.values_each > 9)
        options.refuse("expected at most 9 values of one digit", "found " + std::to_string(shape.values_each));
    return make_ruler(options, length, "niah_single_1",
                      [shape](Random& random) { return draw_niah(shape, nullptr, random); });
}

Generator make_tracing(const GeneratorOptions& options, std::int64_t length) {
    TracingShape shape;
    shape.variables = options.whole("variables");
    shape.letters = options.whole("letters");
    return make_ruler(options, length, "ruler_vt", [shape](Random& random) { return draw_tracing(shape, random); });
}

Generator make_common_words(const GeneratorOptions& options, std::int64_t length) {
    CommonWordsShape shape;
    shape.common = options.whole("common");
    shape.repeats = options.whole("repeats");
    shape.other_repeats = options.whole("other_repeats");
    if (shape.other_repeats >= shape.repeats)
        options.refuse(
            "expected common words more often than others",
            "found " + std::to_string(shape.repeats) + " and " + std::to_string(shape.other_repeats) + " times");
    return make_ruler(options, length, "ruler_cwe",
                      [shape](Random& random) { return draw_common_words(shape, random); });
}

Generator make_frequent_words(const GeneratorOptions& options, std::int64_t length) {
    const std::int64_t vocabulary = options.whole("vocabulary");
    return make_ruler(options, length, "ruler_fwe",
                      [vocabulary](Random& random) { return draw_frequent_words(vocabulary, random); });
}

}  // namespace headscope::data

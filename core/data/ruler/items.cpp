// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include "core/base/error.h"
#include "core/data/ruler/ruler.h"
#include "core/tokenizer/unicode/unicode.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::data {
namespace {

constexpr std::int64_t kNiahTokens = 128;
/// RULER repeats common words less in texts shorter than this.
constexpr std::int64_t kShort = 4096;
/// Tokens of ruler_vt's solved example with its answer at most, and its lines in steps.
constexpr std::int64_t kExampleTokens = 500, kExampleStep = 5, kTracingTokens = 30;

/// A tokenizer may make one token of any text, so that none is too long: one of more bytes a token is.
constexpr std::int64_t kMostBytesOfToken = 1024;

constexpr RulerTask kTasks[] = {
    {"niah_single_1", "RULER: the number of one word, in one line again and again", kNiahTokens, true, false},
    {"niah_single_2", "RULER: the number of one word, in essays", kNiahTokens, true, true},
    {"niah_single_3", "RULER: the UUID of one word, in essays", kNiahTokens, true, true},
    {"niah_multikey_1", "RULER: the number of one of four words, in essays", kNiahTokens, true, true},
    {"niah_multikey_2", "RULER: the number of one of as many words as there is room for", kNiahTokens, true, false},
    {"niah_multikey_3", "RULER: the UUID of one of as many UUIDs as there is room for", kNiahTokens, true, false},
    {"niah_multivalue", "RULER: all four numbers of one word, in essays", kNiahTokens, true, true},
    {"niah_multiquery", "RULER: the numbers of four words, in essays", kNiahTokens, true, true},
    {"ruler_vt", "RULER: all variables that have one value, along a chain of five", kTracingTokens, false, false},
    {"ruler_cwe", "RULER: the ten words that a list has most often", 120, false, false},
    {"ruler_fwe", "RULER: the three most frequent words of a coded text", 50, false, false}};

NiahShape niah_shape(const std::string& task) {
    NiahShape shape;
    if (task == "niah_single_1") return shape;
    shape.hay = RulerHay::essays;
    if (task == "niah_single_3") shape.values = RulerWord::uuids;
    if (task == "niah_multikey_1") shape.key_count = 4;
    if (task == "niah_multivalue") shape.values_each = 4;
    if (task == "niah_multiquery") shape.key_count = shape.asked = 4;
    if (task == "niah_multikey_2" || task == "niah_multikey_3") shape.hay = RulerHay::needles;
    if (task == "niah_multikey_3") shape.keys = shape.values = RulerWord::uuids;
    return shape;
}

bool is_white(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/// Character by character: that a sigma at a word's end has a form of its own is nothing to names and numbers.
std::string lower(const std::string& text) {
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
        const auto character = tokenizer::decode_utf8(text, at);
        char32_t buffer[2];
        for (const char32_t c : tokenizer::to_lower(character.point, buffer)) tokenizer::append_utf8(result, c);
        at += character.length;
    }
    return result;
}

}  // namespace

std::span<const RulerTask> ruler_tasks() {
    return kTasks;
}

const RulerTask* find_ruler_task(const std::string& name) {
    const auto* found =
        std::find_if(std::begin(kTasks), std::end(kTasks), [&](const auto& t) { return name == t.name; });
    return found == std::end(kTasks) ? nullptr : found;
}

std::int64_t most_units(const RulerDraw& draw, std::int64_t hint, const std::function<bool(const RulerText&)>& fits) {
    const std::int64_t least = draw.least(), most = draw.most();
    const auto good = [&](std::int64_t units) { return units <= most && fits(draw.text(units)); };
    // [low, high): low fits and high does not.
    std::int64_t low = std::clamp(hint, least, most), high = low, step = 1;
    if (good(low)) {
        for (high = low + step; good(high); step *= 2) {
            low = high;
            high = low + 2 * step;
        }
    } else {
        do {
            if (low == least) return -1;
            high = low;
            low = std::max(least, low - step);
            step *= 2;
        } while (!good(low));
    }
    while (high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        (good(middle) ? low : high) = middle;
    }
    return low;
}

std::string ruler_prompt(const RulerTask& task, const std::string& input, const std::string& gen_prefix) {
    if (gen_prefix.empty()) return input;
    const bool apart = input.empty() || is_white(input.back()) || is_white(gen_prefix.front());
    const char* const between = std::string_view(task.name) == "ruler_cwe" ? "\n\n" : " ";
    return input + (apart ? "" : between) + gen_prefix;
}

double ruler_score(const std::string& answer, const std::vector<std::string>& outputs) {
    // RULER also trims the answer, which changes nothing: what is asked for begins and ends with a letter or digit.
    std::string text = answer;
    for (char& c : text)
        if (c >= 0 && c < ' ') c = '\n';
    text = lower(text);
    const auto found = std::count_if(outputs.begin(), outputs.end(), [&](const std::string& output) {
        return text.find(lower(output)) != std::string::npos;
    });
    return outputs.empty() ? 0 : static_cast<double>(found) / static_cast<double>(outputs.size());
}

RulerMaker::RulerMaker(const RulerTask& task, std::int64_t length, std::uint64_t seed,
                       std::shared_ptr<const Essays> essays, Count count)
    : task_(task),
      length_(length),
      key_(key_of(seed, static_cast<std::uint64_t>(length))),
      essays_(std::move(essays)),
      count_(std::move(count)) {
    for (const char c : std::string_view(task.name)) key_ = key_of(key_, static_cast<unsigned char>(c));
    if (std::string_view(task.name) == "ruler_vt") {
        // In a short text the example takes at most a quarter.
        const std::int64_t room = std::min(kExampleTokens - kTracingTokens, length / 4);
        for (std::int64_t lines = kExampleStep;; lines += kExampleStep) {
            Random random(key_, 0);
            const std::string example = tracing_example(TracingShape().variables, lines, random);
            if (std::ssize(example) > kMostBytesOfToken * room || count_(example) > room) break;
            example_lines_ = lines;
        }
    }
    hint_ = units(*draw(0), 0);
}

std::unique_ptr<RulerDraw> RulerMaker::draw(std::int64_t index) const {
    Random random(key_, static_cast<std::uint64_t>(index) + 1);
    const std::string name = task_.name;
    if (name == "ruler_vt") {
        TracingShape shape;
        shape.example_lines = example_lines_;
        return draw_tracing(shape, random);
    }
    if (name == "ruler_cwe") {
        CommonWordsShape shape;
        if (length_ < kShort) shape = {10, 6, 1};
        return draw_common_words(shape, random);
    }
    if (name == "ruler_fwe") return draw_frequent_words(std::max<std::int64_t>(5, length_ / 50), random);
    return draw_niah(niah_shape(name), essays_, random);
}

std::int64_t RulerMaker::units(const RulerDraw& draw, std::int64_t hint) const {
    const auto tokens = [this](const RulerText& text) {
        return count_(ruler_prompt(task_, text.input, text.gen_prefix)) + task_.answer_tokens;
    };
    const std::int64_t units = most_units(draw, hint, [&](const RulerText& text) {
        return std::ssize(text.input) <= kMostBytesOfToken * length_ && tokens(text) <= length_;
    });
    if (units >= 0) return units;
    throw Error(ErrorCode::limit, task_.name,
                "expected a length of at least " + std::to_string(tokens(draw.text(draw.least()))) +
                    " tokens, which its question and answer take",
                "found " + std::to_string(length_));
}

RulerItem RulerMaker::item(std::int64_t index) const {
    const auto drawn = draw(index);
    RulerText text = drawn->text(units(*drawn, hint_));
    RulerItem item;
    item.index = index;
    item.length = count_(ruler_prompt(task_, text.input, text.gen_prefix)) + task_.answer_tokens;
    item.max_length = length_;
    item.input = std::move(text.input);
    item.gen_prefix = std::move(text.gen_prefix);
    item.outputs = std::move(text.outputs);
    return item;
}

}  // namespace headscope::data

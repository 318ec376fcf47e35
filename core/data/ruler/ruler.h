// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The retrieval tasks of RULER (Hsieh et al. 2024, arXiv 2404.06654), made: texts that hide what is asked for at their
// end, as full of hay as a length in tokens allows. Words of templates are RULER's, columns lm-eval's. An item is a
// pure function of task, seed, length and its number (and of the tokenizer, which decides how much hay fits). Threads:
// const members from several at once. Errors: Error limit for a length that not even an item without hay fits.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/data/random.h"
#include "core/data/ruler/essays.h"

namespace headscope::data {

/// The question, without and with the start of the answer.
struct RulerText {
    std::string input, gen_prefix;
    std::vector<std::string> outputs;  ///< what an answer should contain
};

/// One item before its length is known: everything is drawn.
class RulerDraw {
public:
    virtual ~RulerDraw() = default;
    /// The text with `units` units of hay: lines, sentences, or words.
    virtual RulerText text(std::int64_t units) const = 0;
    virtual std::int64_t least() const { return 0; }  ///< units without which there is nothing to ask
    virtual std::int64_t most() const { return std::int64_t{1} << 24U; }
};

enum class RulerHay {
    lines,    ///< one line again and again
    essays,   ///< sentences
    needles,  ///< lines that are needles of other keys
};
enum class RulerWord { words, numbers, uuids };

/// A needle in a haystack.
struct NiahShape {
    RulerHay hay = RulerHay::lines;
    RulerWord keys = RulerWord::words, values = RulerWord::numbers;
    std::int64_t key_count = 1, values_each = 1, asked = 1;
    std::int64_t digits = 7;  ///< of numbers
};
/// Needles between sentences of essays stand at different ones of 40 even depths from the begin to the end, between
/// lines anywhere. `essays` may be null where the hay is none.
std::unique_ptr<RulerDraw> draw_niah(const NiahShape& shape, std::shared_ptr<const Essays> essays, Random& random);

/// A chain of variables, each with the value of the one before, among lines of hay. A solved example with this many
/// lines of hay precedes it; below 0: none.
struct TracingShape {
    std::int64_t variables = 5, letters = 5;
    std::int64_t example_lines = -1;
};
std::unique_ptr<RulerDraw> draw_tracing(const TracingShape& shape, Random& random);
/// The example of draw_tracing alone, for who must know how long it is.
std::string tracing_example(std::int64_t variables, std::int64_t lines, Random& random);

/// A numbered list of words, of which some stand there more often. A unit is one more of the others.
struct CommonWordsShape {
    std::int64_t common = 10, repeats = 30, other_repeats = 3;
};
std::unique_ptr<RulerDraw> draw_common_words(const CommonWordsShape& shape, Random& random);

/// Coded words of six letters, as often as their rank^-2 / zeta(2); rank 1 is "...", the next three are asked for. A
/// unit is one more word of the text.
std::unique_ptr<RulerDraw> draw_frequent_words(std::int64_t vocabulary, Random& random);

/// The most units that fit, if fewer fit too; -1: not even the least. `hint`: an estimate, which saves calls.
std::int64_t most_units(const RulerDraw& draw, std::int64_t hint, const std::function<bool(const RulerText&)>& fits);

/// A word of ours: an adjective, a hyphen, a noun.
std::string random_word(Random& random);
const std::vector<std::string>& ruler_adjectives();
const std::vector<std::string>& ruler_nouns();
/// Items as RULER's sentences list them: "a", "a, and b", "a, b, and c".
std::string ruler_list(const std::vector<std::string>& items);

struct RulerTask {
    const char* name;
    const char* summary;
    std::int64_t answer_tokens;  ///< greedy ones at most; no stops but the end of the text
    bool retrieval;              ///< one of the eight of ruler_retrieval
    bool essays;                 ///< its hay is text
};
std::span<const RulerTask> ruler_tasks();
/// Null for another name.
const RulerTask* find_ruler_task(const std::string& name);

/// A row of lm-eval's tables.
struct RulerItem {
    std::int64_t index = 0;
    std::string input, gen_prefix;
    std::vector<std::string> outputs;
    std::int64_t length = 0;      ///< tokens of the prompt with its prefix, and of the answer
    std::int64_t max_length = 0;  ///< the length that was asked for
};

/// A model's input: input, white space (an empty line for ruler_cwe), prefix. The space between is left out if either
/// side has white space.
std::string ruler_prompt(const RulerTask& task, const std::string& input, const std::string& gen_prefix);

/// Share of the outputs that an answer (UTF-8, as the outputs) contains, letter case aside; control characters in it
/// are line ends.
double ruler_score(const std::string& answer, const std::vector<std::string>& outputs);

class RulerMaker {
public:
    /// Tokens of a prompt, special ones included.
    using Count = std::function<std::int64_t(const std::string& prompt)>;
    RulerMaker(const RulerTask& task, std::int64_t length, std::uint64_t seed, std::shared_ptr<const Essays> essays,
               Count count);
    RulerItem item(std::int64_t index) const;

private:
    std::unique_ptr<RulerDraw> draw(std::int64_t index) const;
    std::int64_t units(const RulerDraw& draw, std::int64_t hint) const;

    const RulerTask& task_;
    std::int64_t length_;
    std::uint64_t key_;
    std::shared_ptr<const Essays> essays_;
    Count count_;
    std::int64_t example_lines_ = 0;  ///< of ruler_vt
    std::int64_t hint_ = 0;           ///< units of item 0
};

}  // namespace headscope::data

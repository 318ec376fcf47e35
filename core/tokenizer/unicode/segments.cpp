// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/unicode/segments.h"

#include <algorithm>
#include <iterator>

#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

namespace {

enum class Break : std::uint8_t {
    other,
    carriage_return,
    line_feed,
    control,
    prepend,
    spacing,
    extend,        ///< joins the character before it
    extend_apart,  ///< so too, but not between the consonants of a conjunct
    joiner,
    linker,  ///< a virama: joins consonants to a conjunct; extends otherwise
    consonant,
    pictograph,
    regional,
    leading,
    vowel,
    trailing,
    syllable_lv,
    syllable_lvt,
};

struct BreakRun {
    char32_t first;
    char32_t last;
    Break kind;
};

struct ScriptRun {
    char32_t first;
    char32_t last;
    std::uint8_t script;
};

using enum Break;

#include "core/tokenizer/unicode/segment_tables.inc"

template <class Run, std::size_t count>
const Run* run_of(const Run (&runs)[count], char32_t c) {
    const auto* after = std::upper_bound(std::begin(runs), std::end(runs), c,
                                         [](char32_t point, const Run& run) { return point < run.first; });
    return after != runs && c <= std::prev(after)->last ? std::prev(after) : nullptr;
}

Break break_of(char32_t c) {
    if (c >= 0x20 && c < 0x7F) return other;
    if (c == U'\r') return carriage_return;
    if (c == U'\n') return line_feed;
    if (c == 0x200D) return joiner;
    if (c >= 0xAC00 && c < 0xAC00 + 11172) return (c - 0xAC00) % 28 == 0 ? syllable_lv : syllable_lvt;
    const BreakRun* run = run_of(break_runs, c);
    return run == nullptr ? other : run->kind;
}

bool is_control(Break kind) {
    return kind == control || kind == carriage_return || kind == line_feed;
}

bool is_extend(Break kind) {
    return kind == extend || kind == extend_apart || kind == linker;
}

// State of a cluster that decides how it may continue.
class Cluster {
public:
    explicit Cluster(Break first) : last_(first) { note(first); }

    bool takes(Break next) const {
        if (last_ == carriage_return) return next == line_feed;
        if (is_control(last_) || is_control(next)) return false;
        if (is_extend(next) || next == joiner || next == spacing) return true;
        if (last_ == prepend) return true;
        switch (next) {
            case leading:
            case syllable_lv:
            case syllable_lvt:
                return last_ == leading;
            case vowel:
                return last_ == leading || last_ == syllable_lv || last_ == vowel;
            case trailing:
                return last_ == syllable_lv || last_ == vowel || last_ == syllable_lvt || last_ == trailing;
            case consonant:
                return conjunct_ && linked_;
            case pictograph:
                return last_ == joiner && pictured_;
            case regional:
                return last_ == regional && odd_regionals_;
            default:
                return false;
        }
    }

    void add(Break next) {
        last_ = next;
        note(next);
    }

private:
    void note(Break kind) {
        const bool within = kind == extend || kind == joiner || kind == linker;
        if (kind == consonant) {
            conjunct_ = true;
            linked_ = false;
        } else if (!within) {
            conjunct_ = false;
        }
        linked_ = linked_ || kind == linker;
        if (kind == pictograph) {
            pictured_ = true;
        } else if (!is_extend(kind) && kind != joiner) {
            pictured_ = false;
        }
        odd_regionals_ = kind == regional && !odd_regionals_;
    }

    Break last_;
    bool conjunct_ = false;       ///< a consonant and then only extends, joiners and linkers
    bool linked_ = false;         ///< a linker among them
    bool pictured_ = false;       ///< a pictograph and then only extends
    bool odd_regionals_ = false;  ///< ends with an odd number of regional indicators
};

}  // namespace

std::size_t cluster_end(std::string_view text, std::size_t begin) {
    const Decoded first = decode_utf8(text, begin);
    std::size_t at = begin + first.length;
    // Most clusters are one character of ASCII before another one.
    if (at == text.size() || (first.point < 0x80 && first.point != U'\r' && static_cast<signed char>(text[at]) >= 0)) {
        return at;
    }
    Cluster cluster(break_of(first.point));
    while (at < text.size()) {
        const Decoded next = decode_utf8(text, at);
        const Break kind = break_of(next.point);
        if (!cluster.takes(kind)) break;
        cluster.add(kind);
        at += next.length;
    }
    return at;
}

std::uint8_t script(char32_t c) {
    const ScriptRun* run = run_of(script_runs, c);
    return run == nullptr ? 0 : run->script;
}

}  // namespace headscope::tokenizer

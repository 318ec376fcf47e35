// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/normalizers/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "core/base/cancellation_scope.h"
#include "core/tokenizer/normalizers/normalizer.h"
#include "core/tokenizer/unicode.h"
#include "core/tokenizer/utf8.h"

namespace headscope::tokenizer {

namespace {

constexpr std::size_t characters_per_check = 1 << 16;
constexpr char32_t hangul_first = 0xAC00;
constexpr char32_t hangul_count = 11172;
constexpr char32_t leading_first = 0x1100, leading_count = 19;
constexpr char32_t vowel_first = 0x1161, vowel_count = 21;
constexpr char32_t trailing_before = 0x11A7, trailing_count = 28;  // the first trailing one is "none"

int combining_class(char32_t c) {
    if (c < 0x300) return 0;
    const auto* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
    const int found = property->combining_class;
    return found != 0 && lacks_combining_class(c) ? 0 : found;
}

// The full decomposition of one character into `buffer`; the character itself if there is none.
std::size_t decompose(char32_t c, bool compatible, std::vector<utf8proc_int32_t>& buffer) {
    buffer.resize(32);  // the longest compatibility decomposition has 18 characters
    buffer[0] = static_cast<utf8proc_int32_t>(c);
    if (c < 0xA0 || (compatible ? lacks_compatible_decomposition(c) : lacks_canonical_decomposition(c))) return 1;
    int state = 0;
    const int options = UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), buffer.data(), 32,
                                               static_cast<utf8proc_option_t>(options), &state);
    return count > 0 ? static_cast<std::size_t>(count) : 1;
}

// Primary composites by their two parts; Hangul goes by arithmetic.
class Compositions {
public:
    Compositions() {
        std::vector<utf8proc_int32_t> parts;
        for (char32_t c = 0xC0; c < 0x110000; ++c) {
            if (c >= hangul_first && c < hangul_first + hangul_count) continue;
            const auto* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
            if (property->decomp_seqindex == UINT16_MAX || property->decomp_type != 0) continue;
            const std::size_t count = decompose(c, false, parts);
            if (count < 2) continue;
            // A composite that composition gives back; its first part is what the rest composes to.
            parts.resize(count);
            if (composed(parts) != std::vector<utf8proc_int32_t>{static_cast<utf8proc_int32_t>(c)}) continue;
            const auto second = static_cast<char32_t>(parts.back());
            parts.pop_back();
            const std::vector<utf8proc_int32_t> first = composed(parts);
            if (first.size() != 1) continue;
            pairs_.emplace(key(static_cast<char32_t>(first[0]), second), c);
            seconds_.insert(second);
        }
    }

    std::optional<char32_t> compose(char32_t first, char32_t second) const {
        if (first >= leading_first && first < leading_first + leading_count && second >= vowel_first &&
            second < vowel_first + vowel_count) {
            return hangul_first + ((first - leading_first) * vowel_count + (second - vowel_first)) * trailing_count;
        }
        if (first >= hangul_first && first < hangul_first + hangul_count &&
            (first - hangul_first) % trailing_count == 0 && second > trailing_before &&
            second < trailing_before + trailing_count) {
            return first + (second - trailing_before);
        }
        if (!seconds_.contains(second)) return std::nullopt;
        const auto found = pairs_.find(key(first, second));
        return found == pairs_.end() ? std::nullopt : std::optional<char32_t>(found->second);
    }

    bool can_be_second(char32_t c) const {
        return (c >= vowel_first && c < trailing_before + trailing_count) || seconds_.contains(c);
    }

    static const Compositions& all() {
        static const Compositions instance;
        return instance;
    }

private:
    static std::uint64_t key(char32_t first, char32_t second) {
        return (static_cast<std::uint64_t>(first) << 32) | second;
    }
    static std::vector<utf8proc_int32_t> composed(std::vector<utf8proc_int32_t> points) {
        const auto count = utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()),
                                                    static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
        points.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
        return points;
    }

    std::unordered_map<std::uint64_t, char32_t> pairs_;
    std::unordered_set<char32_t> seconds_;
};

struct Unit {
    Change change;
    int combining = 0;
};

std::vector<Unit> decomposed(std::string_view text, bool compatible) {
    std::vector<Unit> units;
    units.reserve(text.size());
    std::vector<utf8proc_int32_t> parts;
    std::size_t marks = 0;  // combining characters at the end, still to be put in order
    const auto order = [&] {
        if (marks > 1) {
            std::stable_sort(units.end() - static_cast<std::ptrdiff_t>(marks), units.end(),
                             [](const Unit& a, const Unit& b) { return a.combining < b.combining; });
        }
        marks = 0;
    };
    std::size_t characters = 0;
    for (std::size_t at = 0; at < text.size();) {
        if (++characters % characters_per_check == 0) check_cancellation();
        const Decoded c = decode_utf8(text, at);
        at += c.length;
        const std::size_t count = decompose(c.point, compatible, parts);
        for (std::size_t i = 0; i < count; ++i) {
            const auto point = static_cast<char32_t>(parts[i]);
            const int combining = combining_class(point);
            if (combining == 0) order();
            units.push_back({{point, i == 0 ? 0 : 1}, combining});
            if (combining != 0) ++marks;
        }
    }
    order();
    return units;
}

// The composition algorithm; a composite stands for the characters of both its parts.
std::vector<Change> recomposed(const std::vector<Unit>& units) {
    const Compositions& compositions = Compositions::all();
    std::vector<Change> result;
    result.reserve(units.size());
    std::optional<std::size_t> starter;  // index in result
    int last = -1;                       // class of the last character after the starter that stayed, -1 for none
    for (const Unit& unit : units) {
        if (starter && last < unit.combining) {
            Change& first = result[*starter];
            if (const auto composite = compositions.compose(first.point, unit.change.point)) {
                first = {*composite, first.kind + unit.change.kind - 1};
                continue;
            }
        }
        result.push_back(unit.change);
        if (unit.combining == 0) {
            starter = result.size() - 1;
            last = -1;
        } else if (starter) {
            last = unit.combining;
        }
    }
    return result;
}

// True if the form leaves every character of the text alone.
bool is_stable(std::string_view text, bool compatible, bool composed) {
    // Below U+0300, U+00C0 and U+0080 nothing changes; no byte of such text reaches the lead byte of that character.
    const unsigned char lead = compatible ? 0x80 : composed ? 0xCC : 0xC3;
    for (std::size_t at = 0; at < text.size();) {
        if (static_cast<unsigned char>(text[at]) < lead) {
            ++at;
            continue;
        }
        const Decoded c = decode_utf8(text, at);
        if (combining_class(c.point) != 0) return false;
        const auto* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(c.point));
        if (property->decomp_seqindex != UINT16_MAX && !(composed && !compatible && property->decomp_type != 0))
            return false;
        if (c.point >= hangul_first && c.point < hangul_first + hangul_count && !composed) return false;
        if (composed && Compositions::all().can_be_second(c.point)) return false;
        at += c.length;
    }
    return true;
}

class NormalForm final : public Normalizer {
public:
    NormalForm(bool compatible, bool composed) : compatible_(compatible), composed_(composed) {}
    void apply(AlignedText& text) const override { apply_normal_form(text, compatible_, composed_); }

private:
    bool compatible_;
    bool composed_;
};

}  // namespace

void apply_normal_form(AlignedText& text, bool compatible, bool composed) {
    if (is_stable(text.text(), compatible, composed)) return;
    const std::vector<Unit> units = decomposed(text.text(), compatible);
    if (composed) return text.transform(recomposed(units));
    std::vector<Change> changes;
    changes.reserve(units.size());
    for (const Unit& unit : units) changes.push_back(unit.change);
    text.transform(changes);
}

std::unique_ptr<Normalizer> make_normal_form(bool compatible, bool composed) {
    return std::make_unique<NormalForm>(compatible, composed);
}

}  // namespace headscope::tokenizer

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/normalizers/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "core/base/process/cancellation_scope.h"
#include "core/tokenizer/normalizers/normalizer.h"
#include "core/tokenizer/unicode/unicode.h"
#include "core/tokenizer/unicode/utf8.h"

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

// A character of a decomposed text with its combining class, and whether it was inserted: 21, 8 and 1 bits.
class Unit {
public:
    Unit(char32_t point, int combining, bool inserted)
        : bits_(static_cast<std::uint32_t>(combining) << 22 | (inserted ? 1u << 21 : 0u) | point) {}
    char32_t point() const { return bits_ & 0x1FFFFF; }
    int combining() const { return static_cast<int>(bits_ >> 22); }
    Change change() const { return {point(), static_cast<std::int32_t>(bits_ >> 21 & 1)}; }

private:
    std::uint32_t bits_;
};

// Takes the characters of a text in order, and writes their form starter by starter: a character of class 0 and the
// combining ones behind it, which may be all there is in a text.
class Former {
public:
    Former(AlignedText& text, bool compatible, bool composed)
        : result_(text), compatible_(compatible), composed_(composed) {}

    void add(char32_t c) {
        const std::size_t count = decompose(c, compatible_, parts_);
        for (std::size_t i = 0; i < count; ++i) {
            const auto point = static_cast<char32_t>(parts_[i]);
            const int combining = combining_class(point);
            const Unit unit(point, combining, i != 0);
            if (combining != 0) {
                marks_.push_back(unit);
            } else {
                take_marks();
                take_starter(unit);
            }
        }
    }

    void finish() {
        take_marks();
        write_starter();
        result_.finish();
    }

private:
    void take_starter(const Unit& unit) {
        if (starter_ && kept_.empty() && compose(unit)) return;
        write_starter();
        starter_ = unit.change();
    }

    // The composition algorithm; a composite stands for the characters of both its parts.
    void take_marks() {
        if (marks_.empty()) return;
        if (marks_.size() > 1) {
            std::stable_sort(marks_.begin(), marks_.end(),
                             [](const Unit& a, const Unit& b) { return a.combining() < b.combining(); });
        }
        for (const Unit& unit : marks_) {
            const bool free = kept_.empty() || kept_.back().combining() < unit.combining();
            if (starter_ && free && compose(unit)) continue;
            if (composed_ && starter_) {
                kept_.push_back(unit);
            } else {
                write_starter();
                result_.add(unit.change());
            }
        }
        if (marks_.size() > usual_marks) marks_ = {};
        marks_.clear();
    }

    bool compose(const Unit& unit) {
        if (!composed_) return false;
        const auto composite = compositions_->compose(starter_->point, unit.point());
        if (composite) starter_ = Change{*composite, starter_->kind + unit.change().kind - 1};
        return composite.has_value();
    }

    void write_starter() {
        if (starter_) result_.add(*starter_);
        starter_.reset();
        for (const Unit& unit : kept_) result_.add(unit.change());
        if (kept_.size() > usual_marks) kept_ = {};
        kept_.clear();
    }

    static constexpr std::size_t usual_marks = 1 << 12;

    Transformation result_;
    bool compatible_;
    bool composed_;
    const Compositions* compositions_ = composed_ ? &Compositions::all() : nullptr;
    std::vector<utf8proc_int32_t> parts_;
    std::optional<Change> starter_;  ///< not written yet: it may become one with what follows
    std::vector<Unit> kept_;         ///< marks behind it that stay
    std::vector<Unit> marks_;        ///< behind those, still to be put in order
};

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
    Former former(text, compatible, composed);
    const std::string& old = text.text();
    std::size_t characters = 0;
    for (std::size_t at = 0; at < old.size();) {
        if (++characters % characters_per_check == 0) check_cancellation();
        const Decoded c = decode_utf8(old, at);
        former.add(c.point);
        at += c.length;
    }
    former.finish();
}

std::unique_ptr<Normalizer> make_normal_form(bool compatible, bool composed) {
    return std::make_unique<NormalForm>(compatible, composed);
}

}  // namespace headscope::tokenizer

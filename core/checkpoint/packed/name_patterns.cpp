// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/packed/name_patterns.h"

#include <cctype>
#include <utility>

#include "core/base/error.h"

namespace headscope::checkpoint {
namespace {

constexpr std::size_t kLongestExpression = 1000;
constexpr std::size_t kMostStates = 20000;
constexpr int kDeepestGroup = 32;
constexpr int kMostRepeats = 255;
constexpr int kMostAtoms = 100000;  ///< parsed; a repeated group is parsed again

using ByteSet = std::bitset<256>;

ByteSet set_of(int (*holds)(int)) {
    ByteSet set;
    for (int c = 0; c < 128; ++c)
        if (holds(c) != 0) set.set(static_cast<std::size_t>(c));
    return set;
}

/// \d \w \s and their opposites; an escaped punctuation mark is itself. Empty for any other letter.
std::optional<ByteSet> escaped_set(char c) {
    const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    ByteSet set;
    if (lower == 'd') {
        set = set_of(std::isdigit);
    } else if (lower == 'w') {
        set = set_of(std::isalnum);
        set.set('_');
    } else if (lower == 's') {
        set = set_of(std::isspace);
    } else if (std::isalnum(static_cast<unsigned char>(c)) == 0) {
        set.set(static_cast<unsigned char>(c));
        return set;
    } else {
        return std::nullopt;
    }
    return c == lower ? set : ~set;
}

/// "a.*.b" as an expression of the whole name or of one below it.
std::string expression_of(std::string_view name) {
    std::string made;
    for (const char c : name) {
        if (c == '*')
            made += ".*";
        else if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_')
            made += std::string("\\") + c;
        else
            made += c;
    }
    return "(?:" + made + ")(?:$|\\.)";
}

}  // namespace

/// Thompson's construction, by recursive descent. A fragment is a run of states that ends by going on to the next one.
class NamePatternParser {
public:
    NamePatternParser(std::string_view text, NamePattern& pattern) : text_(text), pattern_(pattern) {}

    bool parse() {
        if (!alternatives(0) || at_ != text_.size()) return false;
        add({Kind::match});
        return pattern_.states_.size() <= kMostStates;
    }

private:
    using State = NamePattern::State;
    using Kind = State::Kind;

    bool more() const { return at_ < text_.size(); }
    bool take(std::string_view part) {
        if (text_.substr(at_, part.size()) != part) return false;
        at_ += part.size();
        return true;
    }
    std::size_t here() const { return pattern_.states_.size(); }
    /// Adds a state that goes on to the next one.
    State& add(State state) {
        state.next = here() + 1;
        return pattern_.states_.emplace_back(state);
    }
    void add_set(const ByteSet& set) {
        pattern_.sets_.push_back(set);
        add({Kind::character}).set = pattern_.sets_.size() - 1;
    }
    /// Puts a split before the states from `start` on.
    void insert_split(std::size_t start) {
        auto& states = pattern_.states_;
        State split{Kind::split};
        split.next = start + 1;
        states.insert(states.begin() + static_cast<std::ptrdiff_t>(start), split);
        for (std::size_t i = start + 1; i < states.size(); ++i) {
            ++states[i].next;
            if (states[i].kind == Kind::split || states[i].kind == Kind::ahead || states[i].kind == Kind::not_ahead)
                ++states[i].other;
        }
    }

    bool alternatives(int depth) {
        if (depth > kDeepestGroup) return false;
        const std::size_t start = here();
        if (!sequence(depth)) return false;
        if (!take("|")) return true;
        insert_split(start);
        add({Kind::jump});
        const std::size_t jump = here() - 1;
        pattern_.states_[start].other = here();
        if (!alternatives(depth)) return false;
        pattern_.states_[jump].next = here();
        return true;
    }

    bool sequence(int depth) {
        while (more() && text_[at_] != '|' && text_[at_] != ')') {
            const std::size_t start = here();
            const std::size_t from = at_;
            if (!atom(depth)) return false;
            if (!repeats(start, from, depth)) return false;
            if (here() > kMostStates) return false;
        }
        return true;
    }

    bool atom(int depth) {
        if (++atoms_ > kMostAtoms) return false;
        if (take("(?=") || take("(?!")) {
            const bool negative = text_[at_ - 1] == '!';
            add({negative ? Kind::not_ahead : Kind::ahead});
            const std::size_t look = here() - 1;
            pattern_.states_[look].other = here();
            if (!alternatives(depth + 1) || !take(")")) return false;
            add({Kind::match});
            pattern_.states_[look].next = here();
            return true;
        }
        if (take("(?:") || take("(")) {
            if (more() && text_[at_] == '?') return false;
            return alternatives(depth + 1) && take(")");
        }
        if (take("[")) return byte_class();
        if (take("^")) return add({Kind::begin}), true;
        if (take("$")) return add({Kind::end}), true;
        if (take("\\")) {
            const auto set = more() ? escaped_set(text_[at_++]) : std::nullopt;
            if (!set) return false;
            return add_set(*set), true;
        }
        const char c = text_[at_++];
        if (c == '*' || c == '+' || c == '?' || c == '{') return false;
        ByteSet set;
        if (c == '.')
            set = ByteSet().set('\n').flip();
        else
            set.set(static_cast<unsigned char>(c));
        return add_set(set), true;
    }

    /// A class, behind its bracket.
    bool byte_class() {
        const bool negative = take("^");
        ByteSet set;
        for (bool first = true; first || !take("]"); first = false) {
            if (!more()) return false;
            if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
                const auto escaped = escaped_set(text_[at_ + 1]);
                if (!escaped) return false;
                set |= *escaped;
                at_ += 2;
                continue;
            }
            const auto low = static_cast<unsigned char>(text_[at_++]);
            unsigned char high = low;
            if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
                high = static_cast<unsigned char>(text_[at_ + 1]);
                at_ += 2;
                if (high < low || high == '\\') return false;
            }
            for (unsigned c = low; c <= high; ++c) set.set(c);
        }
        return add_set(negative ? ~set : set), true;
    }

    bool number(int& value) {
        const std::size_t from = at_;
        for (value = 0; more() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0; ++at_) {
            value = value * 10 + (text_[at_] - '0');
            if (value > kMostRepeats) return false;
        }
        return at_ > from;
    }

    /// Repeats the atom that begins at state `start` and at byte `from`.
    bool repeats(std::size_t start, std::size_t from, int depth) {
        const std::string_view atom_text = text_.substr(from, at_ - from);
        int least = 1, most = 1;  // -1: any number
        if (take("*"))
            least = 0, most = -1;
        else if (take("+"))
            most = -1;
        else if (take("?"))
            least = 0;
        else if (take("{")) {
            if (!number(least)) return false;
            most = least;
            if (take(",")) {
                most = -1;
                if (more() && text_[at_] != '}' && !number(most)) return false;
            }
            if (!take("}") || (most >= 0 && most < least)) return false;
        } else {
            return true;
        }
        take("?");  // greedy or not: the same names match
        if (more() && (text_[at_] == '*' || text_[at_] == '+' || text_[at_] == '?')) return false;
        const std::size_t behind = at_;
        pattern_.states_.resize(start);
        const auto again = [&] {
            at_ = from;
            return here() <= kMostStates && atom(depth) && at_ == from + atom_text.size();
        };
        for (int i = 0; i < least; ++i)
            if (!again()) return false;
        if (most < 0) {
            const std::size_t loop = here();
            add({Kind::split});
            if (!again()) return false;
            add({Kind::jump}).next = loop;
            pattern_.states_[loop].other = here();
        }
        std::vector<std::size_t> optional;
        for (int i = least; i < most; ++i) {
            optional.push_back(here());
            add({Kind::split});
            if (!again()) return false;
        }
        for (const std::size_t split : optional) pattern_.states_[split].other = here();
        at_ = behind;
        return true;
    }

    std::string_view text_;
    std::size_t at_ = 0;
    int atoms_ = 0;
    NamePattern& pattern_;
};

std::optional<NamePattern> NamePattern::parse(std::string_view expression) {
    NamePattern pattern;
    if (expression.size() > kLongestExpression || !NamePatternParser(expression, pattern).parse()) return std::nullopt;
    return pattern;
}

bool NamePattern::matches(std::string_view name, std::uint64_t& steps) const {
    return run(0, 0, name, steps);
}

bool NamePattern::run(std::size_t start, std::size_t at, std::string_view name, std::uint64_t& steps) const {
    // States by position: each set is left before the next is made, so memory does not depend on the name.
    std::vector<std::size_t> now{start}, next, open;
    steps += states_.size();
    std::vector<std::size_t> seen(states_.size(), 0);  // 1 + the step that last reached the state
    for (std::size_t step = 1; !now.empty(); ++step, ++at) {
        next.clear();
        open = now;
        while (!open.empty()) {
            const std::size_t i = open.back();
            open.pop_back();
            if (seen[i] == step) continue;
            seen[i] = step;
            if (++steps > most_steps) {
                throw Error(ErrorCode::limit, "quantization settings",
                            "expected expressions that match module names in a few seconds",
                            "found ones that take longer");
            }
            const State& state = states_[i];
            bool goes_on = false;
            switch (state.kind) {
                case State::Kind::match:
                    return true;
                case State::Kind::character:
                    if (at < name.size() && sets_[state.set].test(static_cast<unsigned char>(name[at])))
                        next.push_back(state.next);
                    break;
                case State::Kind::split:
                    open.push_back(state.other);
                    goes_on = true;
                    break;
                case State::Kind::jump:
                    goes_on = true;
                    break;
                case State::Kind::begin:
                    goes_on = at == 0;
                    break;
                case State::Kind::end:
                    goes_on = at == name.size();
                    break;
                case State::Kind::ahead:
                    goes_on = run(state.other, at, name, steps);
                    break;
                case State::Kind::not_ahead:
                    goes_on = !run(state.other, at, name, steps);
                    break;
            }
            if (goes_on) open.push_back(state.next);
        }
        std::swap(now, next);
    }
    return false;
}

ModuleList::ModuleList(const std::vector<std::string>& entries, const std::string& where) {
    for (const std::string& text : entries) {
        const bool expression = text.starts_with("re:");
        if (!expression && text.find('*') == std::string::npos) {
            if (!text.empty()) names_.insert(text);
            continue;
        }
        auto pattern = NamePattern::parse(expression ? text.substr(3) : expression_of(text));
        if (!pattern) {
            throw Error(ErrorCode::unsupported, where,
                        "expected module names and expressions of classes, groups and repeats",
                        "found \"" + escaped(text, 60) + '"');
        }
        expressions_.push_back({text, *std::move(pattern)});
    }
}

std::string_view ModuleList::covering(std::string_view module, std::uint64_t& steps) const {
    if (const auto found = names_.find(module); found != names_.end()) return *found;
    for (std::size_t dot = module.find('.'); dot != std::string_view::npos; dot = module.find('.', dot + 1)) {
        for (const std::string_view part : {module.substr(0, dot), module.substr(dot + 1)})
            if (const auto found = names_.find(part); found != names_.end()) return *found;
    }
    for (const Expression& expression : expressions_)
        if (expression.pattern.matches(module, steps)) return expression.text;
    return {};
}

}  // namespace headscope::checkpoint

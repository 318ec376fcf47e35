// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/head_filter.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/text/nearest_word.h"
#include "core/base/text/text.h"

namespace headscope::workspace {

enum class Comparison { less, at_most, more, at_least, equal, unequal };

/// A value of a row: a number, one of the row's own numbers, or a column.
struct Term {
    enum class Kind { number, layer, head, site, key_value_head, column } kind = Kind::number;
    double number = 0;
    std::size_t column = 0;

    double of(const HeadTable& table, std::size_t row) const {
        switch (kind) {
            case Kind::number:
                return number;
            case Kind::layer:
                return table.rows[row].layer;
            case Kind::head:
                return table.rows[row].head;
            case Kind::site:
                return static_cast<double>(table.rows[row].site);
            case Kind::key_value_head:
                return table.rows[row].key_value_head;
            case Kind::column:
                return table.value(row, column);
        }
        return number;
    }
};

struct HeadFilter::Node {
    enum class Kind { all_of, any_of, negation, comparison } kind = Kind::all_of;
    std::vector<Node> parts;
    std::vector<Term> terms;  ///< comparison: terms[i] compared[i] terms[i + 1], all of them
    std::vector<Comparison> compared;

    bool holds(const HeadTable& table, std::size_t row) const {
        const auto part_holds = [&](const Node& part) { return part.holds(table, row); };
        switch (kind) {
            case Kind::all_of:
                return std::all_of(parts.begin(), parts.end(), part_holds);
            case Kind::any_of:
                return std::any_of(parts.begin(), parts.end(), part_holds);
            case Kind::negation:
                return !parts.front().holds(table, row);
            case Kind::comparison:
                break;
        }
        for (std::size_t i = 0; i < compared.size(); ++i) {
            if (!compare(compared[i], terms[i].of(table, row), terms[i + 1].of(table, row))) return false;
        }
        return true;
    }

    static bool compare(Comparison how, double left, double right) {
        switch (how) {
            case Comparison::less:
                return left < right;
            case Comparison::at_most:
                return left <= right;
            case Comparison::more:
                return left > right;
            case Comparison::at_least:
                return left >= right;
            case Comparison::equal:
                return left == right;
            case Comparison::unequal:
                return left < right || left > right;  // a value that does not exist is not unequal either
        }
        return false;
    }
};

namespace {

using Node = HeadFilter::Node;

constexpr int kDeepest = 100;  ///< brackets and negations within each other

bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

class Parser {
public:
    Parser(std::string_view text, const HeadTable& table) : text_(text), table_(table) {}

    Node parse() {
        Node node;
        skip_spaces();
        if (at_ == text_.size()) return node;
        node = any_of();
        if (at_ != text_.size()) refuse("and, or, or the end");
        return node;
    }

private:
    Node any_of() { return joined("or", Node::Kind::any_of, &Parser::all_of); }
    Node all_of() { return joined("and", Node::Kind::all_of, &Parser::part); }

    Node joined(std::string_view word, Node::Kind kind, Node (Parser::*next)()) {
        Node first = (this->*next)();
        if (!take_word(word)) return first;
        Node node;
        node.kind = kind;
        node.parts.push_back(std::move(first));
        do {
            node.parts.push_back((this->*next)());
        } while (take_word(word));
        return node;
    }

    Node part() {
        if (++depth_ > kDeepest) refuse("at most " + std::to_string(kDeepest) + " brackets within each other");
        Node node;
        if (take_word("not")) {
            node.kind = Node::Kind::negation;
            node.parts.push_back(part());
        } else if (take("(")) {
            node = any_of();
            if (!take(")")) refuse("a closing bracket");
        } else {
            node = comparison();
        }
        --depth_;
        return node;
    }

    Node comparison() {
        Node node;
        node.kind = Node::Kind::comparison;
        node.terms.push_back(term());
        while (const auto how = operation()) {
            node.compared.push_back(*how);
            node.terms.push_back(term());
        }
        if (node.compared.empty()) refuse("one of < <= > >= = !=");
        return node;
    }

    std::optional<Comparison> operation() {
        constexpr std::array<std::pair<std::string_view, Comparison>, 7> known{{{"<=", Comparison::at_most},
                                                                                {">=", Comparison::at_least},
                                                                                {"!=", Comparison::unequal},
                                                                                {"==", Comparison::equal},
                                                                                {"<", Comparison::less},
                                                                                {">", Comparison::more},
                                                                                {"=", Comparison::equal}}};
        for (const auto& [sign, how] : known)
            if (take(sign)) return how;
        return std::nullopt;
    }

    Term term() {
        Term term;
        const char* begin = text_.data() + at_;
        const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), term.number);
        const bool number =
            error == std::errc{} && (*begin == '-' || *begin == '.' || (*begin >= '0' && *begin <= '9'));
        if (number) {
            if (end != text_.data() + text_.size() && is_word(*end)) refuse("a name or a number");
            at_ += static_cast<std::size_t>(end - begin);
            skip_spaces();
            return term;
        }
        const std::string name(text_.substr(at_, word_length()));
        if (name.empty()) refuse("a name or a number");
        constexpr std::array<std::pair<std::string_view, Term::Kind>, 4> own{
            {{"layer", Term::Kind::layer},
             {"head", Term::Kind::head},
             {"site", Term::Kind::site},
             {"key_value_head", Term::Kind::key_value_head}}};
        for (const auto& [word, kind] : own)
            if (name == word) term.kind = kind;
        if (const auto column = table_.column(name)) {
            term.kind = Term::Kind::column;
            term.column = *column;
        }
        if (term.kind == Term::Kind::number) {
            std::vector<std::string> known = table_.columns;
            for (const auto& [word, kind] : own) known.emplace_back(word);
            const std::string near = nearest_word(name, known);
            refuse(near.empty() ? "the name of a column" : "the name of a column (" + near + "?)");
        }
        at_ += name.size();
        skip_spaces();
        return term;
    }

    std::size_t word_length() const {
        std::size_t end = at_;
        while (end < text_.size() && is_word(text_[end])) ++end;
        return end - at_;
    }

    bool take(std::string_view sign) {
        if (text_.substr(at_, sign.size()) != sign) return false;
        at_ += sign.size();
        skip_spaces();
        return true;
    }

    bool take_word(std::string_view word) { return word_length() == word.size() && take(word); }

    void skip_spaces() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
    }

    [[noreturn]] void refuse(const std::string& expected) const {
        const std::size_t length = std::max<std::size_t>(word_length(), 1);
        const std::string found = at_ < text_.size() ? escaped(std::string(text_.substr(at_, length))) : "the end";
        throw Error(ErrorCode::usage, "filter, character " + std::to_string(at_ + 1), "expected " + expected,
                    "found " + found);
    }

    std::string_view text_;
    const HeadTable& table_;
    std::size_t at_ = 0;
    int depth_ = 0;
};

}  // namespace

HeadFilter::HeadFilter(std::string_view text, const HeadTable& table)
    : root_(std::make_unique<Node>(Parser(text, table).parse())) {}
HeadFilter::~HeadFilter() = default;
HeadFilter::HeadFilter(HeadFilter&&) noexcept = default;
HeadFilter& HeadFilter::operator=(HeadFilter&&) noexcept = default;

bool HeadFilter::matches(const HeadTable& table, std::size_t row) const {
    return root_->holds(table, row);
}

std::vector<std::size_t> HeadFilter::rows(const HeadTable& table) const {
    std::vector<std::size_t> found;
    for (std::size_t row = 0; row < table.rows.size(); ++row)
        if (matches(table, row)) found.push_back(row);
    return found;
}

}  // namespace headscope::workspace

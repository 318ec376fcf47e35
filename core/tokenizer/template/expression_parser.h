// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "core/tokenizer/template/node.h"
#include "core/tokenizer/template/token_stream.h"

namespace headscope::tokenizer::chat {

/// Jinja's expressions, with its precedences: or, and, not, comparisons, + -, ~, * / // %, **, signs, then what follows
/// a value: attributes, items, calls, filters, tests.
class ExpressionParser {
public:
    ExpressionParser(TokenStream& tokens, int& depth) : tokens_(tokens), depth_(depth) {}

    /// `conditional`: x if y else z may stand here without brackets.
    NodePointer expression(bool conditional = true);
    /// One or, with commas, a tuple of them. `until`: a name that ends it.
    NodePointer tuple(bool conditional, std::string_view until = {});
    /// Target of an assignment: a name, a tuple of targets or, if allowed, a member of a namespace.
    NodePointer target(bool members);
    /// Filters after "|", or the one that comes first in a filter block; null when there is none.
    NodePointer filters(NodePointer subject, bool first_without_bar);
    std::vector<Argument> arguments();

private:
    using Level = NodePointer (ExpressionParser::*)();

    NodePointer conditional();
    NodePointer any_of();
    NodePointer all_of();
    NodePointer negation();
    NodePointer comparison();
    NodePointer sum();
    NodePointer concat();
    NodePointer product();
    NodePointer power();
    NodePointer signed_value() { return unary(true); }
    NodePointer unary(bool with_filters);
    NodePointer primary();
    NodePointer literal_list();
    NodePointer literal_dict();
    NodePointer one_target(bool members);
    NodePointer postfix(NodePointer node);
    NodePointer subscript(NodePointer object);
    NodePointer test(NodePointer subject);

    NodePointer left_chain(Level operand, std::initializer_list<std::string_view> symbols);
    NodePointer many(Type type, Level operand, std::string_view word, bool is_symbol);
    NodePointer make(Type type, std::size_t at, std::string text = {}) const;
    bool at_end(std::string_view until) const;
    void grow(int& length) const;

    TokenStream& tokens_;
    int& depth_;
};

}  // namespace headscope::tokenizer::chat

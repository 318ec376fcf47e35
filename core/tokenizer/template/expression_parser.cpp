// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/template/expression_parser.h"

#include <algorithm>
#include <array>

namespace headscope::tokenizer::chat {

NodePointer ExpressionParser::make(Type type, std::size_t at, std::string text) const {
    auto node = std::make_unique<Node>();
    node->type = type;
    node->at = at;
    node->text = std::move(text);
    return node;
}

/// a + b + c ... and x|f|g ... make trees as deep as they are long.
void ExpressionParser::grow(int& length) const {
    if (++length > 100) refuse(ErrorCode::limit, "expected at most 100 operations in a row", "found more");
}

NodePointer ExpressionParser::expression(bool with_conditional) {
    const Nesting nesting(depth_);
    return with_conditional ? conditional() : any_of();
}

NodePointer ExpressionParser::conditional() {
    NodePointer value = any_of();
    int length = 0;
    while (tokens_.is_name("if")) {
        grow(length);
        auto node = make(Type::conditional, tokens_.take().at);
        node->children.push_back(any_of());
        node->children.push_back(std::move(value));
        node->children.push_back(tokens_.skip_name("else") ? expression() : nullptr);
        value = std::move(node);
    }
    return value;
}

NodePointer ExpressionParser::many(Type type, Level operand, std::string_view word, bool is_symbol) {
    const std::size_t at = tokens_.current().at;
    NodePointer first = (this->*operand)();
    if (!(is_symbol ? tokens_.is_symbol(word) : tokens_.is_name(word))) return first;
    auto node = make(type, at);
    node->children.push_back(std::move(first));
    while (is_symbol ? tokens_.skip_symbol(word) : tokens_.skip_name(word))
        node->children.push_back((this->*operand)());
    return node;
}

NodePointer ExpressionParser::any_of() {
    return many(Type::any_of, &ExpressionParser::all_of, "or", false);
}
NodePointer ExpressionParser::all_of() {
    return many(Type::all_of, &ExpressionParser::negation, "and", false);
}
NodePointer ExpressionParser::concat() {
    return many(Type::concat, &ExpressionParser::product, "~", true);
}

NodePointer ExpressionParser::negation() {
    if (!tokens_.is_name("not")) return comparison();
    const Nesting nesting(depth_);
    auto node = make(Type::negation, tokens_.take().at);
    node->children.push_back(negation());
    return node;
}

NodePointer ExpressionParser::comparison() {
    static constexpr std::array<std::string_view, 6> symbols = {"==", "!=", "<", "<=", ">", ">="};
    auto node = make(Type::compare, tokens_.current().at);
    node->children.push_back(sum());
    while (true) {
        const Token& token = tokens_.current();
        if (token.kind == Kind::symbol && std::find(symbols.begin(), symbols.end(), token.text) != symbols.end()) {
            node->texts.push_back(tokens_.take().text);
        } else if (tokens_.is_name("in")) {
            node->texts.push_back(tokens_.take().text);
        } else if (tokens_.is_name("not") && tokens_.ahead().kind == Kind::name && tokens_.ahead().text == "in") {
            tokens_.take();
            tokens_.take();
            node->texts.emplace_back("not in");
        } else {
            break;
        }
        node->children.push_back(sum());
    }
    return node->texts.empty() ? std::move(node->children[0]) : std::move(node);
}

NodePointer ExpressionParser::left_chain(Level operand, std::initializer_list<std::string_view> symbols) {
    NodePointer left = (this->*operand)();
    int length = 0;
    while (std::any_of(symbols.begin(), symbols.end(), [&](auto symbol) { return tokens_.is_symbol(symbol); })) {
        grow(length);
        Token sign = tokens_.take();
        auto node = make(Type::binary, sign.at, std::move(sign.text));
        node->children.push_back(std::move(left));
        node->children.push_back((this->*operand)());
        left = std::move(node);
    }
    return left;
}

NodePointer ExpressionParser::sum() {
    return left_chain(&ExpressionParser::concat, {"+", "-"});
}
NodePointer ExpressionParser::product() {
    return left_chain(&ExpressionParser::power, {"*", "/", "//", "%"});
}
NodePointer ExpressionParser::power() {
    return left_chain(&ExpressionParser::signed_value, {"**"});
}

NodePointer ExpressionParser::unary(bool with_filters) {
    NodePointer node;
    if (tokens_.is_symbol("-") || tokens_.is_symbol("+")) {
        const Nesting nesting(depth_);
        Token sign = tokens_.take();
        node = make(Type::unary, sign.at, std::move(sign.text));
        node->children.push_back(unary(false));
    } else {
        node = primary();
    }
    node = postfix(std::move(node));
    int length = 0;
    while (with_filters) {
        if (tokens_.is_symbol("|")) {
            node = filters(std::move(node), false);
        } else if (tokens_.is_name("is")) {
            node = test(std::move(node));
        } else if (tokens_.is_symbol("(")) {
            node = postfix(std::move(node));
        } else {
            break;
        }
        grow(length);
    }
    return node;
}

NodePointer ExpressionParser::primary() {
    const std::size_t at = tokens_.current().at;
    auto constant = [&](Value value) {
        auto node = make(Type::constant, at);
        node->value = std::move(value);
        return node;
    };
    switch (tokens_.current().kind) {
        case Kind::name: {
            std::string name = tokens_.take().text;
            if (name == "true" || name == "True") return constant(true);
            if (name == "false" || name == "False") return constant(false);
            if (name == "none" || name == "None") return constant(None{});
            return make(Type::name, at, std::move(name));
        }
        case Kind::string: {
            std::string text = tokens_.take().text;
            while (tokens_.is(Kind::string)) text += tokens_.take().text;
            return constant(std::move(text));
        }
        case Kind::integer:
            return constant(tokens_.take().integer);
        case Kind::real:
            return constant(tokens_.take().real);
        default:
            break;
    }
    if (tokens_.skip_symbol("(")) {
        const Nesting nesting(depth_);
        if (tokens_.skip_symbol(")")) return make(Type::tuple, at);
        NodePointer node = tuple(true);
        tokens_.expect_symbol(")");
        return node;
    }
    if (tokens_.is_symbol("[")) return literal_list();
    if (tokens_.is_symbol("{")) return literal_dict();
    tokens_.refuse_current("expected an expression");
}

NodePointer ExpressionParser::literal_list() {
    auto node = make(Type::list, tokens_.take().at);
    while (!tokens_.is_symbol("]")) {
        node->children.push_back(expression());
        if (!tokens_.skip_symbol(",")) break;
    }
    tokens_.expect_symbol("]");
    return node;
}

NodePointer ExpressionParser::literal_dict() {
    auto node = make(Type::dict, tokens_.take().at);
    while (!tokens_.is_symbol("}")) {
        node->children.push_back(expression());
        tokens_.expect_symbol(":");
        node->children.push_back(expression());
        if (!tokens_.skip_symbol(",")) break;
    }
    tokens_.expect_symbol("}");
    return node;
}

bool ExpressionParser::at_end(std::string_view until) const {
    return tokens_.is(Kind::variable_end) || tokens_.is(Kind::block_end) || tokens_.is_symbol(")") ||
           (!until.empty() && tokens_.is_name(until));
}

NodePointer ExpressionParser::tuple(bool with_conditional, std::string_view until) {
    const std::size_t at = tokens_.current().at;
    NodePointer first = expression(with_conditional);
    if (!tokens_.is_symbol(",")) return first;
    auto node = make(Type::tuple, at);
    node->children.push_back(std::move(first));
    while (tokens_.skip_symbol(",") && !at_end(until)) node->children.push_back(expression(with_conditional));
    return node;
}

NodePointer ExpressionParser::one_target(bool members) {
    const std::size_t at = tokens_.current().at;
    if (tokens_.skip_symbol("(")) {
        const Nesting nesting(depth_);
        NodePointer inner = target(members);
        tokens_.expect_symbol(")");
        return inner;
    }
    static constexpr std::array<std::string_view, 6> constants = {"true", "false", "none", "True", "False", "None"};
    if (std::find(constants.begin(), constants.end(), tokens_.current().text) != constants.end())
        tokens_.refuse_current("expected a name");
    auto node = make(Type::name, at, tokens_.expect_any_name());
    if (members && tokens_.skip_symbol(".")) {
        node->type = Type::member;
        node->texts.push_back(tokens_.expect_any_name());
    }
    return node;
}

NodePointer ExpressionParser::target(bool members) {
    const std::size_t at = tokens_.current().at;
    NodePointer first = one_target(members);
    if (!tokens_.is_symbol(",")) return first;
    auto node = make(Type::tuple, at);
    node->children.push_back(std::move(first));
    while (tokens_.skip_symbol(",") && (tokens_.is_symbol("(") || (tokens_.is(Kind::name) && !tokens_.is_name("in"))))
        node->children.push_back(one_target(members));
    return node;
}

NodePointer ExpressionParser::postfix(NodePointer node) {
    for (int length = 0;; grow(length)) {
        const std::size_t at = tokens_.current().at;
        if (tokens_.is_symbol(".") || tokens_.is_symbol("[")) {
            node = subscript(std::move(node));
        } else if (tokens_.is_symbol("(")) {
            auto call = make(Type::call, at);
            call->children.push_back(std::move(node));
            call->arguments = arguments();
            node = std::move(call);
        } else {
            return node;
        }
    }
}

NodePointer ExpressionParser::subscript(NodePointer object) {
    const std::size_t at = tokens_.current().at;
    if (tokens_.skip_symbol(".")) {
        NodePointer node;
        if (tokens_.is(Kind::integer)) {
            node = make(Type::item, at);
            node->children.push_back(std::move(object));
            node->children.push_back(make(Type::constant, at));
            node->children.back()->value = tokens_.take().integer;
        } else {
            node = make(Type::attribute, at, tokens_.expect_any_name());
            node->children.push_back(std::move(object));
        }
        return node;
    }
    tokens_.expect_symbol("[");
    auto node = make(Type::item, at);
    node->children.push_back(std::move(object));
    const auto part = [&] {
        const bool none = tokens_.is_symbol(":") || tokens_.is_symbol("]");
        node->children.push_back(none ? nullptr : expression());
    };
    part();
    if (tokens_.is_symbol(":")) {
        node->type = Type::slice;
        for (int i = 0; i < 2; ++i) tokens_.skip_symbol(":") ? part() : node->children.push_back(nullptr);
    } else if (!node->children[1]) {
        tokens_.refuse_current("expected an expression");
    }
    tokens_.expect_symbol("]");
    return node;
}

std::vector<Argument> ExpressionParser::arguments() {
    std::vector<Argument> all;
    tokens_.expect_symbol("(");
    bool named = false;
    while (!tokens_.is_symbol(")")) {
        Argument& argument = all.emplace_back();
        if (tokens_.skip_symbol("*")) {
            argument.stars = 1;
        } else if (tokens_.skip_symbol("**")) {
            argument.stars = 2;
        } else if (tokens_.is(Kind::name) && tokens_.ahead().kind == Kind::symbol && tokens_.ahead().text == "=") {
            argument.name = tokens_.take().text;
            tokens_.take();
        }
        if (named && argument.name.empty() && argument.stars == 0)
            tokens_.refuse_current("expected named arguments after others");
        named = named || !argument.name.empty() || argument.stars > 0;
        argument.value = expression();
        if (!tokens_.skip_symbol(",")) break;
    }
    tokens_.expect_symbol(")");
    return all;
}

NodePointer ExpressionParser::filters(NodePointer subject, bool first_without_bar) {
    for (int length = 0; first_without_bar || tokens_.skip_symbol("|"); grow(length)) {
        first_without_bar = false;
        const std::size_t at = tokens_.current().at;
        auto node = make(Type::filter, at, tokens_.expect_any_name());
        node->children.push_back(std::move(subject));
        if (tokens_.is_symbol("(")) node->arguments = arguments();
        subject = std::move(node);
    }
    return subject;
}

NodePointer ExpressionParser::test(NodePointer subject) {
    const std::size_t at = tokens_.take().at;
    const bool negated = tokens_.skip_name("not");
    auto node = make(Type::test, at, tokens_.expect_any_name());
    node->children.push_back(std::move(subject));
    const bool word_goes_on = tokens_.is_name("else") || tokens_.is_name("or") || tokens_.is_name("and");
    if (tokens_.is_symbol("(")) {
        node->arguments = arguments();
    } else if (!word_goes_on && (tokens_.is(Kind::name) || tokens_.is(Kind::string) || tokens_.is(Kind::integer) ||
                                 tokens_.is(Kind::real) || tokens_.is_symbol("[") || tokens_.is_symbol("{"))) {
        if (tokens_.is_name("is")) tokens_.refuse_current("expected one test at a time");
        const Nesting nesting(depth_);
        node->arguments.emplace_back().value = postfix(primary());
    }
    if (!negated) return node;
    auto negation = make(Type::negation, at);
    negation->children.push_back(std::move(node));
    return negation;
}

}  // namespace headscope::tokenizer::chat

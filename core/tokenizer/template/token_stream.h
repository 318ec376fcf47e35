// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tokenizer/template/lexer.h"

namespace headscope::tokenizer::chat {

/// Tokens, looked at one ahead. `at` follows the current one.
class TokenStream {
public:
    TokenStream(std::string_view source, std::size_t& at) : tokens_(cut(source, at)), at_(at) { at_ = tokens_[0].at; }

    const Token& current() const { return tokens_[position_]; }
    const Token& ahead() const { return tokens_[std::min(position_ + 1, tokens_.size() - 1)]; }
    Token take() {
        Token token = std::move(tokens_[position_]);
        tokens_[position_].kind = token.kind;  // the last one stays what it is
        if (position_ + 1 < tokens_.size()) ++position_;
        at_ = current().at;
        return token;
    }

    bool is(Kind kind) const { return current().kind == kind; }
    bool is_name(std::string_view name) const { return is(Kind::name) && current().text == name; }
    bool is_symbol(std::string_view symbol) const { return is(Kind::symbol) && current().text == symbol; }
    bool skip_name(std::string_view name) { return is_name(name) && (take(), true); }
    bool skip_symbol(std::string_view symbol) { return is_symbol(symbol) && (take(), true); }

    void expect_symbol(const std::string& symbol) {
        if (!skip_symbol(symbol)) refuse_current("expected \"" + symbol + '"');
    }
    void expect_name(const std::string& name) {
        if (!skip_name(name)) refuse_current("expected \"" + name + '"');
    }
    void expect(Kind kind, const std::string& expected) {
        if (!is(kind)) refuse_current(expected);
        take();
    }
    std::string expect_any_name() {
        if (!is(Kind::name)) refuse_current("expected a name");
        return take().text;
    }

    [[noreturn]] void refuse_current(std::string expected) const {
        static const char* const words[] = {"text", "{%", "%}", "{{", "}}"};
        const Token& token = current();
        refuse(std::move(expected), token.kind == Kind::end ? "found the end of the template"
                                    : token.kind <= Kind::variable_end
                                        ? std::string("found ") + words[static_cast<int>(token.kind)]
                                        : "found \"" + escaped(token.text, 60) + '"');
    }

private:
    std::vector<Token> tokens_;
    std::size_t position_ = 0;
    std::size_t& at_;
};

/// Counts how deep a parser is, so that no template makes it, or what walks its tree, run out of stack.
class Nesting {
public:
    explicit Nesting(int& depth) : depth_(depth) {
        if (depth_ >= 100) refuse(ErrorCode::limit, "expected a template nested at most 100 deep", "found more");
        ++depth_;
    }
    ~Nesting() { --depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

private:
    int& depth_;
};

}  // namespace headscope::tokenizer::chat

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/template/parser.h"

#include <algorithm>
#include <initializer_list>

#include "core/tokenizer/template/expression_parser.h"
#include "core/tokenizer/template/token_stream.h"

namespace headscope::tokenizer::chat {
namespace {

class Parser {
public:
    Parser(std::string_view source, std::size_t& at) : tokens_(source, at), expressions_(tokens_, depth_) {}

    Body run() { return statements({}); }

private:
    using Ends = std::initializer_list<std::string_view>;

    /// Up to {% and one of the names, which is left to be taken; without names up to the end of the template.
    Body statements(Ends ends) {
        const Nesting nesting(depth_);
        Body body;
        while (!tokens_.is(Kind::end)) {
            const std::size_t at = tokens_.current().at;
            if (tokens_.is(Kind::data)) {
                body.push_back(node(Type::data, at));
                body.back()->value = tokens_.take().text;
            } else if (tokens_.is(Kind::variable_begin)) {
                tokens_.take();
                body.push_back(node(Type::print, at));
                body.back()->children.push_back(expressions_.tuple(true));
                tokens_.expect(Kind::variable_end, "expected }}");
            } else {
                tokens_.expect(Kind::block_begin, "expected {%");
                if (std::any_of(ends.begin(), ends.end(), [&](auto end) { return tokens_.is_name(end); })) return body;
                body.push_back(statement(at));
                tokens_.expect(Kind::block_end, "expected %}");
            }
        }
        if (ends.size() > 0) tokens_.refuse_current("expected {% " + std::string(*(ends.end() - 1)) + " %}");
        return body;
    }

    /// The rest of a tag, then statements up to one of the names.
    Body body_until(Ends ends) {
        tokens_.skip_symbol(":");
        tokens_.expect(Kind::block_end, "expected %}");
        return statements(ends);
    }
    /// The same for what has names of its own: no macro may be made there, for it would see them. `loops`: whether
    /// a loop around here may be left from inside.
    Body inner(Ends ends, bool loops) {
        ++blocks_;
        const int outside = loops ? loops_ : std::exchange(loops_, 0);
        Body body = body_until(ends);
        loops_ = outside;
        --blocks_;
        return body;
    }
    Body inner(std::string_view end, bool loops) {
        Body body = inner(Ends{end}, loops);
        tokens_.take();
        return body;
    }

    static NodePointer node(Type type, std::size_t at) {
        auto made = std::make_unique<Node>();
        made->type = type;
        made->at = at;
        return made;
    }

    NodePointer statement(std::size_t at) {
        const std::string name = tokens_.current().text;
        if (!tokens_.is(Kind::name)) tokens_.refuse_current("expected the name of a block");
        if (name == "set") return assignment(at);
        if (name == "for") return loop(at);
        if (name == "if") return branch(at);
        if (name == "macro") return macro(at);
        if (name == "with") return with(at);
        if (name == "filter") return filter_block(at);
        if (name == "print") return print(at);
        if (name == "generation") {
            tokens_.take();
            auto made = node(Type::generation, at);
            made->bodies.push_back(inner("endgeneration", false));
            return made;
        }
        if (name == "break" || name == "continue") {
            if (loops_ == 0) tokens_.refuse_current("expected it inside of a loop");
            tokens_.take();
            return node(name == "break" ? Type::leave : Type::next, at);
        }
        refuse(ErrorCode::unsupported,
               "expected a block of the kind set, for, if, macro, with, filter, print, raw or generation",
               "found \"" + escaped(name, 60) + '"');
    }

    NodePointer assignment(std::size_t at) {
        tokens_.take();
        NodePointer target = expressions_.target(true);
        const bool block = !tokens_.skip_symbol("=");
        auto made = node(block ? Type::assign_block : Type::assign, at);
        made->children.push_back(std::move(target));
        made->children.push_back(block ? expressions_.filters(nullptr, false) : expressions_.tuple(true));
        if (block) made->bodies.push_back(inner("endset", false));
        return made;
    }

    NodePointer loop(std::size_t at) {
        tokens_.take();
        auto made = node(Type::loop, at);
        made->children.push_back(expressions_.target(false));
        tokens_.expect_name("in");
        made->children.push_back(expressions_.tuple(false, "recursive"));
        made->children.push_back(tokens_.skip_name("if") ? expressions_.expression() : nullptr);
        if (tokens_.is_name("recursive"))
            refuse(ErrorCode::unsupported, "expected a loop that does not call itself", "found \"recursive\"");
        ++loops_;
        made->bodies.push_back(inner({"else", "endfor"}, true));
        --loops_;
        if (tokens_.take().text == "else") made->bodies.push_back(inner("endfor", true));
        return made;
    }

    NodePointer branch(std::size_t at) {
        auto made = node(Type::branch, at);
        while (true) {
            tokens_.take();
            made->children.push_back(expressions_.tuple(false));
            made->bodies.push_back(body_until({"elif", "else", "endif"}));
            if (!tokens_.is_name("elif")) break;
        }
        if (tokens_.take().text == "else") {
            made->bodies.push_back(body_until({"endif"}));
            tokens_.take();
        }
        return made;
    }

    NodePointer macro(std::size_t at) {
        if (blocks_ > 0)
            refuse(ErrorCode::unsupported, "expected macros outside of loops and other macros", "found one inside");
        tokens_.take();
        auto made = node(Type::macro, at);
        made->text = tokens_.expect_any_name();
        tokens_.expect_symbol("(");
        while (!tokens_.is_symbol(")")) {
            Argument& parameter = made->arguments.emplace_back();
            parameter.name = tokens_.expect_any_name();
            if (tokens_.skip_symbol("="))
                parameter.value = expressions_.expression();
            else if (made->arguments.size() > 1 && (made->arguments.end() - 2)->value)
                tokens_.refuse_current("expected a default, as the parameter before has one");
            if (!tokens_.skip_symbol(",")) break;
        }
        tokens_.expect_symbol(")");
        made->bodies.push_back(inner("endmacro", false));
        return made;
    }

    NodePointer with(std::size_t at) {
        tokens_.take();
        auto made = node(Type::with, at);
        while (!tokens_.is(Kind::block_end)) {
            made->children.push_back(expressions_.target(false));
            tokens_.expect_symbol("=");
            made->children.push_back(expressions_.expression());
            if (!tokens_.skip_symbol(",")) break;
        }
        made->bodies.push_back(inner("endwith", true));
        return made;
    }

    NodePointer filter_block(std::size_t at) {
        tokens_.take();
        auto made = node(Type::filter_block, at);
        made->children.push_back(expressions_.filters(nullptr, true));
        made->bodies.push_back(inner("endfilter", false));
        return made;
    }

    NodePointer print(std::size_t at) {
        tokens_.take();
        auto made = node(Type::print, at);
        while (!tokens_.is(Kind::block_end)) {
            made->children.push_back(expressions_.expression());
            if (!tokens_.skip_symbol(",")) break;
        }
        return made;
    }

    int depth_ = 0;
    int loops_ = 0;   ///< around here, in this macro
    int blocks_ = 0;  ///< with names of their own, around here
    TokenStream tokens_;
    ExpressionParser expressions_;
};

}  // namespace

Body parse(std::string_view source, std::size_t& at) {
    return Parser(source, at).run();
}

}  // namespace headscope::tokenizer::chat

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/tokenizer/template/value.h"

namespace headscope::tokenizer::chat {

enum class Type {
    // Expressions: what `children` are.
    constant,     ///< value
    name,         ///< text
    list,         ///< items
    tuple,        ///< items
    dict,         ///< key, value, key, value ...
    attribute,    ///< object; text: its name
    item,         ///< object, key
    slice,        ///< object, start, stop, step; null: left out
    call,         ///< callee; arguments
    filter,       ///< subject (null: of a block); text: its name; arguments
    test,         ///< subject; text, arguments
    unary,        ///< operand; text: "-" or "+"
    binary,       ///< left, right; text: the operator
    concat,       ///< operands of ~
    compare,      ///< first, second, ...; texts: the operators between them
    all_of,       ///< operands of and
    any_of,       ///< operands of or
    negation,     ///< operand of not
    conditional,  ///< condition, then, else (null: left out)
    member,       ///< target only: text, texts[0]: name and attribute of a namespace
    // Statements: `bodies` are what is inside of them.
    data,          ///< value: text to print
    print,         ///< expressions
    assign,        ///< target, value
    assign_block,  ///< target, chain of filters or null; body
    loop,          ///< target, what to go through, condition or null; body, else
    branch,        ///< conditions; a body each, and one more for else
    macro,         ///< text: name; arguments: parameters with defaults; body
    with,          ///< target, value, target, value ...; body
    filter_block,  ///< chain of filters; body
    generation,    ///< body
    leave,         ///< break
    next,          ///< continue
};

struct Node;
using NodePointer = std::unique_ptr<Node>;
using Body = std::vector<NodePointer>;

struct Argument {
    std::string name;   ///< empty: by position
    int stars = 0;      ///< 1: *list, 2: **mapping
    NodePointer value;  ///< null: a parameter without a default
};

struct Node {
    Type type = Type::constant;
    std::size_t at = 0;  ///< byte of the template
    std::string text = {};
    Value value = {};
    Body children = {};
    std::vector<Argument> arguments = {};
    std::vector<Body> bodies = {};
    std::vector<std::string> texts = {};
};

}  // namespace headscope::tokenizer::chat

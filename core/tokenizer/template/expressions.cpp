// SPDX-License-Identifier: GPL-3.0-or-later
#include <locale.h>
#include <time.h>

#include <algorithm>
#include <array>

#include "core/tokenizer/template/evaluator.h"
#include "core/tokenizer/template/python_text.h"

namespace headscope::tokenizer::chat {
namespace {

constexpr std::size_t most_arguments = 255;

bool is_ours(std::string_view name) {
    static constexpr std::array<std::string_view, 5> names = {"range", "namespace", "dict", "raise_exception",
                                                              "strftime_now"};
    return std::find(names.begin(), names.end(), name) != names.end();
}

/// The C locale, whatever the program's is. Never freed: it is needed to the end.
locale_t plain_locale() {
    static const locale_t made = ::newlocale(LC_ALL_MASK, "C", static_cast<locale_t>(nullptr));
    return made;
}

}  // namespace

Value Evaluator::evaluate(const Node& node) {
    const Deeper deeper(depth_);
    at_ = node.at;
    tools_.budget.steps(1);
    const auto child = [&](std::size_t i) { return evaluate(*node.children[i]); };
    const auto part = [&](std::size_t i) { return node.children[i] ? std::optional<Value>(child(i)) : std::nullopt; };
    const auto items = [&](bool tuple) {
        std::vector<Value> made;
        for (const NodePointer& item : node.children) made.push_back(evaluate(*item));
        return Value::list(std::move(made), tuple);
    };
    switch (node.type) {
        case Type::constant:
            return node.value;
        case Type::name:
            return look_up(node.text);
        case Type::list:
            return items(false);
        case Type::tuple:
            return items(true);
        case Type::dict:
            return make_dict(node);
        case Type::attribute: {
            const Value object = child(0);
            at_ = node.at;
            return attribute(object, node.text, tools_.budget);
        }
        case Type::item: {
            const Value object = child(0), key = child(1);
            at_ = node.at;
            return item(object, key, tools_.budget);
        }
        case Type::slice: {
            const Value object = child(0);
            const auto start = part(1), stop = part(2), step = part(3);
            at_ = node.at;
            return slice(object, start ? &*start : nullptr, stop ? &*stop : nullptr, step ? &*step : nullptr,
                         tools_.budget);
        }
        case Type::call:
            return call(node);
        case Type::filter:
            return call_filter(node, nullptr);
        case Type::test: {
            const Value subject = child(0);
            Arguments arguments = arguments_of(node);
            at_ = node.at;
            return tested(node.text, subject, std::move(arguments), tools_);
        }
        case Type::unary: {
            const Value operand = child(0);
            at_ = node.at;
            return node.text == "-" ? negative(operand) : negative(negative(operand));
        }
        case Type::binary: {
            const Value left = child(0), right = child(1);
            at_ = node.at;
            return binary(node.text, left, right, tools_.budget);
        }
        case Type::concat: {
            std::string text;
            for (const NodePointer& operand : node.children) text += plain_text(evaluate(*operand), tools_.budget);
            return text;
        }
        case Type::compare:
            return compare_chain(node);
        case Type::all_of:
        case Type::any_of: {
            Value value;
            for (const NodePointer& operand : node.children) {
                value = evaluate(*operand);
                if (value.truth() == (node.type == Type::any_of)) break;
            }
            return value;
        }
        case Type::negation:
            return !child(0).truth();
        case Type::conditional:
            if (child(0).truth()) return child(1);
            return node.children[2] ? child(2) : Value::undefined("an if without an else");
        default:
            refuse(ErrorCode::internal, "expected an expression", "found a statement");
    }
}

Value Evaluator::look_up(std::string_view name) const {
    for (const Scope* scope = scope_; scope; scope = scope->outer)
        if (const auto found = scope->names.find(name); found != scope->names.end()) return found->second;
    if (const auto found = variables_.find(name); found != variables_.end()) return found->second;
    if (is_ours(name))
        return Value(std::make_shared<const Function>(Function{Function::Kind::ours, std::string(name), nullptr, {}}));
    return Value::undefined(name);
}

Value Evaluator::make_dict(const Node& node) {
    std::vector<std::pair<Value, Value>> entries;
    for (std::size_t i = 0; i + 1 < node.children.size(); i += 2) {
        Value key = evaluate(*node.children[i]);
        entries.emplace_back(std::move(key), evaluate(*node.children[i + 1]));
    }
    at_ = node.at;
    return Value::dict(std::move(entries), tools_.budget);
}

Value Evaluator::compare_chain(const Node& node) {
    Value left = evaluate(*node.children[0]);
    for (std::size_t i = 0; i < node.texts.size(); ++i) {
        Value right = evaluate(*node.children[i + 1]);
        at_ = node.at;
        const std::string& sign = node.texts[i];
        bool holds = false;
        if (sign == "==" || sign == "!=")
            holds = equal(left, right, tools_.budget) == (sign == "==");
        else if (sign == "in" || sign == "not in")
            holds = contains(right, left, tools_.budget) == (sign == "in");
        else {
            const int way = compare(left, right, tools_.budget);
            holds = (way == -1 && sign[0] == '<') || (way == 1 && sign[0] == '>') || (way == 0 && sign.size() == 2);
        }
        if (!holds) return false;
        left = std::move(right);
    }
    return true;
}

Arguments Evaluator::arguments_of(const Node& node) {
    Arguments arguments;
    for (const Argument& argument : node.arguments) {
        Value value = evaluate(*argument.value);
        if (argument.stars == 1) {
            const auto all = items_of(value, tools_.budget);
            arguments.positional.insert(arguments.positional.end(), all->items.begin(), all->items.end());
        } else if (argument.stars == 2) {
            if (!value.dict()) refuse("expected a mapping after **", "found " + value.described());
            for (const auto& [key, item] : value.dict()->entries) {
                if (!key.string()) refuse("expected names after **", "found " + key.described());
                arguments.named.emplace_back(*key.string(), item);
            }
        } else if (argument.name.empty()) {
            arguments.positional.push_back(std::move(value));
        } else {
            arguments.named.emplace_back(argument.name, std::move(value));
        }
        if (arguments.positional.size() + arguments.named.size() > most_arguments)
            refuse(ErrorCode::limit, "expected at most 255 arguments", "found more");
    }
    return arguments;
}

Value Evaluator::call_filter(const Node& node, const Value* subject) {
    // A chain of filters over a block begins with the one that has no subject of its own.
    const Deeper deeper(depth_);
    Value value;
    if (!node.children[0])
        value = *subject;
    else if (subject && node.children[0]->type == Type::filter)
        value = call_filter(*node.children[0], subject);
    else
        value = evaluate(*node.children[0]);
    Arguments arguments = arguments_of(node);
    at_ = node.at;
    return filtered(node.text, value, std::move(arguments), tools_);
}

Value Evaluator::call(const Node& node) {
    const Value callee = evaluate(*node.children[0]);
    Arguments arguments = arguments_of(node);
    at_ = node.at;
    const auto* held = callee.get<std::shared_ptr<const Function>>();
    if (!held) refuse("expected something to call", "found " + callee.described());
    const Function& function = **held;
    switch (function.kind) {
        case Function::Kind::macro:
            return call_macro(*function.macro, std::move(arguments));
        case Function::Kind::method:
            return call_method(function.self, function.name, std::move(arguments), tools_);
        case Function::Kind::ours:
            break;
    }
    return call_ours(function.name, std::move(arguments));
}

Value Evaluator::call_ours(const std::string& name, Arguments arguments) {
    if (name == "range") return make_range(std::move(arguments));
    if (name == "namespace") return make_namespace(std::move(arguments));
    if (name == "dict") {
        std::vector<std::pair<Value, Value>> entries;
        if (const auto from = arguments.take("")) {
            if (!from->dict()) refuse("expected a mapping", "found " + from->described());
            entries = from->dict()->entries;
        }
        for (auto& [key, value] : std::exchange(arguments.named, {}))
            entries.emplace_back(Value(key), std::move(value));
        arguments.finish();
        return Value::dict(std::move(entries), tools_.budget);
    }
    if (name == "raise_exception") {
        const std::string message = plain_text(arguments.need("message"), tools_.budget);
        refuse(ErrorCode::usage, "expected messages that the template takes", "found: \"" + escaped(message) + '"');
    }
    const Value format = arguments.need("format");
    arguments.finish();
    return date_text(format);
}

Value Evaluator::make_namespace(Arguments arguments) {
    Namespace& space = namespaces_.emplace_back();
    if (const auto from = arguments.take("")) {
        if (!from->dict()) refuse("expected a mapping", "found " + from->described());
        for (const auto& [key, value] : from->dict()->entries)
            if (key.string()) space.values[*key.string()] = value;
    }
    for (auto& [key, value] : std::exchange(arguments.named, {})) space.values[key] = std::move(value);
    arguments.finish();
    return Value(&space);
}

Value Evaluator::make_range(Arguments arguments) {
    std::array<std::int64_t, 3> given = {0, 0, 1};
    const std::size_t count = arguments.positional.size();
    if (count < 1 || count > 3) refuse("expected one to three numbers", "found " + std::to_string(count));
    for (std::size_t i = 0; i < count; ++i) {
        std::int64_t& to = given[count == 1 ? 1 : i];
        if (!arguments.positional[i].integer(to))
            refuse("expected whole numbers", "found " + arguments.positional[i].described());
    }
    const auto [start, stop, step] = given;
    if (step == 0) refuse("expected a step", "found 0");
    const double size = (static_cast<double>(stop) - static_cast<double>(start)) / static_cast<double>(step);
    if (size > 100'000) refuse(ErrorCode::limit, "expected a range of at most 100 000 numbers", "found a longer one");
    std::vector<Value> numbers;
    for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
        tools_.budget.steps(1);
        numbers.emplace_back(i);
        if (__builtin_add_overflow(i, step, &i)) break;
    }
    return Value::list(std::move(numbers));
}

Value Evaluator::date_text(const Value& format) const {
    const auto* text = format.string();
    if (!text || text->size() > 200)
        refuse("expected a date's format of at most 200 bytes", "found " + format.described());
    if (text->empty()) return "";
    std::array<char, 8192> buffer{};
    const std::size_t size = ::strftime_l(buffer.data(), buffer.size(), text->c_str(), &tools_.now, plain_locale());
    return std::string(buffer.data(), size);
}

}  // namespace headscope::tokenizer::chat

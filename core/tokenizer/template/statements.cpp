// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include "core/tokenizer/template/evaluator.h"
#include "core/tokenizer/template/python_text.h"

namespace headscope::tokenizer::chat {

Evaluator::Evaluator(const Variables& variables, const std::tm& now, Budget& budget, std::size_t& at)
    : variables_(variables), tools_{budget, now}, at_(at) {}

std::string Evaluator::run(const Body& body) {
    return captured(body);
}

Evaluator::Flow Evaluator::execute(const Body& body) {
    for (const NodePointer& node : body) {
        const Flow flow = execute(*node);
        if (flow != Flow::on) return flow;
    }
    return Flow::on;
}

Evaluator::Flow Evaluator::execute(const Node& node) {
    const Deeper deeper(depth_);
    at_ = node.at;
    tools_.budget.steps(1);
    switch (node.type) {
        case Type::data:
            print(node.value);
            return Flow::on;
        case Type::print:
            for (const NodePointer& expression : node.children) print(evaluate(*expression));
            return Flow::on;
        case Type::assign:
            assign(*node.children[0], evaluate(*node.children[1]));
            return Flow::on;
        case Type::assign_block: {
            const Value text(captured_inside(node.bodies[0]));
            assign(*node.children[0], node.children[1] ? call_filter(*node.children[1], &text) : text);
            return Flow::on;
        }
        case Type::loop:
            return run_loop(node);
        case Type::branch:
            return run_branch(node);
        case Type::macro: {
            auto macro = std::make_shared<const Function>(Function{Function::Kind::macro, node.text, &node, {}});
            scope_->names[node.text] = Value(std::move(macro));
            return Flow::on;
        }
        case Type::with:
            return run_with(node);
        case Type::filter_block: {
            const Value text(captured_inside(node.bodies[0]));
            print(call_filter(*node.children[0], &text));
            return Flow::on;
        }
        case Type::generation:
            print(Value(captured_inside(node.bodies[0])));
            return Flow::on;
        case Type::leave:
            return Flow::leave;
        case Type::next:
            return Flow::next;
        default:
            refuse(ErrorCode::internal, "expected a statement", "found an expression");
    }
}

void Evaluator::print(const Value& value) {
    if (const auto* text = value.string()) {
        tools_.budget.bytes(text->size());
        *out_ += *text;
    } else {
        *out_ += plain_text(value, tools_.budget);
    }
}

std::string Evaluator::captured(const Body& body) {
    std::string text;
    std::string* const before = std::exchange(out_, &text);
    execute(body);  // a throw ends the evaluator: out_ is not read then
    out_ = before;
    return text;
}

std::string Evaluator::captured_inside(const Body& body) {
    const Inner inner(*this);
    return captured(body);
}

void Evaluator::assign(const Node& target, const Value& value) {
    at_ = target.at;
    if (target.type == Type::name) {
        scope_->names[target.text] = value;
    } else if (target.type == Type::member) {
        const Value holder = look_up(target.text);
        const auto* space = holder.get<Namespace*>();
        if (!space) refuse("expected a namespace to set a member of", "found " + holder.described());
        tools_.budget.steps(1);
        (*space)->values[target.texts[0]] = value;
    } else {
        const auto parts = items_of(value, tools_.budget);
        if (parts->items.size() != target.children.size())
            refuse("expected " + std::to_string(target.children.size()) + " values",
                   "found " + std::to_string(parts->items.size()));
        for (std::size_t i = 0; i < parts->items.size(); ++i) assign(*target.children[i], parts->items[i]);
    }
}

Evaluator::Flow Evaluator::run_loop(const Node& node) {
    auto items = items_of(evaluate(*node.children[1]), tools_.budget);
    if (node.children[2]) {
        List passed;
        passed.depth = items->depth;
        for (const Value& item : items->items) {
            const Inner inner(*this);
            assign(*node.children[0], item);
            if (evaluate(*node.children[2]).truth()) passed.items.push_back(item);
        }
        items = std::make_shared<const List>(std::move(passed));
    }
    if (items->items.empty()) {
        if (node.bodies.size() < 2) return Flow::on;
        const Inner inner(*this);
        return execute(node.bodies[1]);
    }
    for (std::size_t i = 0; i < items->items.size(); ++i) {
        const Inner inner(*this);
        scope_->names["loop"] = Value(std::make_shared<const Loop>(Loop{items, static_cast<std::int64_t>(i)}));
        assign(*node.children[0], items->items[i]);
        if (execute(node.bodies[0]) == Flow::leave) break;
    }
    return Flow::on;
}

Evaluator::Flow Evaluator::run_branch(const Node& node) {
    for (std::size_t i = 0; i < node.children.size(); ++i)
        if (evaluate(*node.children[i]).truth()) return execute(node.bodies[i]);
    return node.bodies.size() > node.children.size() ? execute(node.bodies.back()) : Flow::on;
}

Evaluator::Flow Evaluator::run_with(const Node& node) {
    std::vector<Value> values;
    for (std::size_t i = 1; i < node.children.size(); i += 2) values.push_back(evaluate(*node.children[i]));
    const Inner inner(*this);
    for (std::size_t i = 0; i < values.size(); ++i) assign(*node.children[2 * i], values[i]);
    return execute(node.bodies[0]);
}

Value Evaluator::call_macro(const Node& macro, Arguments arguments) {
    const std::size_t called_at = at_;
    const Inner inner(*this, &root_);  // macros see what is set outside of all blocks
    for (const Argument& parameter : macro.arguments) {
        auto value = arguments.take(parameter.name);
        if (!value) value = parameter.value ? evaluate(*parameter.value) : Value::undefined(parameter.name);
        scope_->names[parameter.name] = *std::move(value);
        at_ = called_at;
    }
    arguments.finish();
    Value text(captured(macro.bodies[0]));
    at_ = called_at;
    return text;
}

}  // namespace headscope::tokenizer::chat

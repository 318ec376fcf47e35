// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Values of expressions in a template: Python's plain ones, immutable except namespaces.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/tokenizer/template/fault.h"

namespace headscope::tokenizer::chat {

class Value;
struct Node;

struct None {};
/// Value of an undefined name or key: prints as nothing, and refuses most operations.
struct Undefined {
    std::shared_ptr<const std::string> name;
};

/// Lists and tuples. `depth`: of lists in lists; bounded, so that walking one never runs out of stack.
struct List {
    std::vector<Value> items;
    bool tuple = false;
    int depth = 1;
};
/// In the order in which keys came; found by looking through all, which the budget pays for.
struct Dict {
    std::vector<std::pair<Value, Value>> entries;
    int depth = 1;
};
/// Owned by the evaluator, which outlives all values: namespaces may hold each other.
struct Namespace {
    std::map<std::string, Value, std::less<>> values;
};
/// `loop` inside of a for.
struct Loop {
    std::shared_ptr<const List> items;
    std::int64_t index = 0;
};

/// A macro, a function of ours or a method of a value.
struct Function;

class Value {
public:
    Value() : held_(Undefined{}) {}
    Value(None) : held_(None{}) {}
    Value(bool value) : held_(value) {}
    Value(std::int64_t value) : held_(value) {}
    Value(double value) : held_(value) {}
    Value(std::string value) : held_(std::make_shared<const std::string>(std::move(value))) {}
    Value(const char* value) : Value(std::string(value)) {}
    Value(Namespace* value) : held_(value) {}
    Value(std::shared_ptr<const Loop> value) : held_(std::move(value)) {}
    Value(std::shared_ptr<const Function> value) : held_(std::move(value)) {}

    static Value undefined(std::string_view name);
    /// Throws Fault (limit) for lists that lie in one another more than 100 deep.
    static Value list(std::vector<Value> items, bool tuple = false);
    /// Later ones of equal keys replace earlier ones, in their place.
    static Value dict(std::vector<std::pair<Value, Value>> entries, Budget& budget);

    template <class T>
    const T* get() const {
        return std::get_if<T>(&held_);
    }
    bool is_undefined() const { return get<Undefined>() != nullptr; }
    bool is_none() const { return get<None>() != nullptr; }
    /// Null where it is none.
    const std::string* string() const;
    const List* list() const;
    const Dict* dict() const;
    std::shared_ptr<const List> shared_list() const;
    /// True and false count as 1 and 0, as in Python.
    bool integer(std::int64_t& value) const;
    bool number(double& value) const;

    bool truth() const;
    int depth() const;
    /// "a string", "undefined" ..., for errors.
    std::string kind() const;
    /// The name under which something undefined was looked for, for errors.
    std::string described() const;

private:
    std::variant<Undefined, None, bool, std::int64_t, double, std::shared_ptr<const std::string>,
                 std::shared_ptr<const List>, std::shared_ptr<const Dict>, Namespace*, std::shared_ptr<const Loop>,
                 std::shared_ptr<const Function>>
        held_;
};

struct Function {
    enum class Kind { macro, ours, method } kind = Kind::ours;
    std::string name;             ///< of ours and methods
    const Node* macro = nullptr;  ///< lives as long as the template
    Value self;                   ///< of methods
};

/// Python's ==. Charges a step for each pair it compares.
bool equal(const Value& a, const Value& b, Budget& budget);
/// Python's order: -1, 0, 1; 2 where a NaN has none. Throws Fault where two kinds have none.
int compare(const Value& a, const Value& b, Budget& budget);
/// Null when the key is not there.
const Value* find(const Dict& dict, const Value& key, Budget& budget);
const Value* find(const Dict& dict, std::string_view key, Budget& budget);

}  // namespace headscope::tokenizer::chat

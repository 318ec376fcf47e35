// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Operations of the evaluator on values, by Python's and Jinja's rules. All throw Fault.

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tokenizer/template/value.h"

namespace headscope::tokenizer::chat {

/// Arguments of a filter, test, method or function, taken parameter by parameter in their order.
class Arguments {
public:
    std::vector<Value> positional;
    std::vector<std::pair<std::string, Value>> named;

    /// The next parameter, by position or by this name.
    std::optional<Value> take(std::string_view name);
    Value need(std::string_view name);
    bool flag(std::string_view name, bool fallback);
    std::int64_t integer(std::string_view name, std::int64_t fallback);
    /// Refuses arguments left over.
    void finish() const;

private:
    bool take(std::string_view name, Value& value);

    std::size_t next_ = 0;
};

/// Tools of calls besides their arguments.
struct Tools {
    Budget& budget;
    std::tm now;
};

Value binary(const std::string& sign, const Value& left, const Value& right, Budget& budget);
Value negative(const Value& value);
bool contains(const Value& container, const Value& item, Budget& budget);

/// object.name: a method or attribute, else the entry of that name; undefined if neither.
Value attribute(const Value& object, const std::string& name, Budget& budget);
/// object[key]: the entry, else the method or attribute.
Value item(const Value& object, const Value& key, Budget& budget);
/// "a.b.0" of an object, as filters take it.
Value at_path(const Value& object, const Value& path, Budget& budget);
Value slice(const Value& object, const Value* start, const Value* stop, const Value* step, Budget& budget);
/// Elements of a loop: items, keys, characters.
std::shared_ptr<const List> items_of(const Value& value, Budget& budget);
std::int64_t length_of(const Value& value);

Value filtered(const std::string& name, const Value& subject, Arguments arguments, Tools& tools);
bool tested(const std::string& name, const Value& subject, Arguments arguments, Tools& tools);
Value call_method(const Value& self, const std::string& name, Arguments arguments, Tools& tools);
/// Result of looking up a method of a kind of value; `changing` methods would change the value.
enum class Method { none, known, changing };
Method method_of(const Value& value, const std::string& name);

/// "%s and %d" % values; "{} and {name}".format(...).
std::string percent_format(std::string_view format, const Value& values, Budget& budget);
std::string brace_format(std::string_view format, const Arguments& arguments, Budget& budget);

bool is_filter(const std::string& name);
bool is_test(const std::string& name);

}  // namespace headscope::tokenizer::chat

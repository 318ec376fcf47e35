// SPDX-License-Identifier: GPL-3.0-or-later
// Tests after "is", and by name in select and the like.
#include <functional>
#include <map>

#include "core/tokenizer/template/operations.h"
#include "core/tokenizer/template/python_text.h"

namespace headscope::tokenizer::chat {
namespace {

using Test = std::function<bool(const Value&, Arguments&, Tools&)>;

std::int64_t whole(const Value& value) {
    std::int64_t number = 0;
    if (!value.integer(number)) refuse("expected a whole number", "found " + value.described());
    return number;
}

bool is_divisible(std::int64_t number, std::int64_t by) {
    if (by == 0) refuse("expected a divisor", "found 0");
    return by == -1 || number % by == 0;
}

/// Identity, as far as immutable values have one.
bool same(const Value& a, const Value& b, Budget& budget) {
    return a.kind() == b.kind() && (a.list()   ? a.list() == b.list()
                                    : a.dict() ? a.dict() == b.dict()
                                               : equal(a, b, budget));
}

bool is_iterable(const Value& value) {
    return value.is_undefined() || value.string() || value.list() || value.dict();
}

Test compared(bool (*holds)(int)) {
    return [holds](const Value& value, Arguments& arguments, Tools& tools) {
        return holds(compare(value, arguments.need("other"), tools.budget));
    };
}

Test plain(std::function<bool(const Value&)> holds) {
    return [holds = std::move(holds)](const Value& value, Arguments&, Tools&) { return holds(value); };
}

std::map<std::string, Test, std::less<>> make_tests() {
    std::map<std::string, Test, std::less<>> all;
    all["defined"] = plain([](const Value& v) { return !v.is_undefined(); });
    all["undefined"] = plain([](const Value& v) { return v.is_undefined(); });
    all["none"] = plain([](const Value& v) { return v.is_none(); });
    all["boolean"] = plain([](const Value& v) { return v.get<bool>() != nullptr; });
    all["true"] = plain([](const Value& v) { return v.get<bool>() && *v.get<bool>(); });
    all["false"] = plain([](const Value& v) { return v.get<bool>() && !*v.get<bool>(); });
    all["integer"] = plain([](const Value& v) { return v.get<std::int64_t>() != nullptr; });
    all["float"] = plain([](const Value& v) { return v.get<double>() != nullptr; });
    all["number"] = plain([](const Value& v) {
        double number = 0;
        return v.number(number);
    });
    all["string"] = plain([](const Value& v) { return v.string() != nullptr; });
    all["mapping"] = plain([](const Value& v) { return v.dict() != nullptr; });
    all["iterable"] = all["sequence"] = plain(is_iterable);
    all["callable"] = plain([](const Value& v) { return v.get<std::shared_ptr<const Function>>() != nullptr; });
    all["escaped"] = plain([](const Value&) { return false; });
    all["odd"] = plain([](const Value& v) { return whole(v) % 2 != 0; });
    all["even"] = plain([](const Value& v) { return whole(v) % 2 == 0; });
    all["lower"] = [](const Value& v, Arguments&, Tools& t) { return is_lower(plain_text(v, t.budget)); };
    all["upper"] = [](const Value& v, Arguments&, Tools& t) { return is_upper(plain_text(v, t.budget)); };
    all["divisibleby"] = [](const Value& v, Arguments& a, Tools&) {
        return is_divisible(whole(v), whole(a.need("num")));
    };
    all["in"] = [](const Value& v, Arguments& a, Tools& t) { return contains(a.need("seq"), v, t.budget); };
    all["sameas"] = [](const Value& v, Arguments& a, Tools& t) { return same(v, a.need("other"), t.budget); };
    all["filter"] = plain([](const Value& v) { return v.string() && is_filter(*v.string()); });
    all["test"] = plain([](const Value& v) { return v.string() && is_test(*v.string()); });
    for (const char* name : {"eq", "equalto", "=="})
        all[name] = [](const Value& v, Arguments& a, Tools& t) { return equal(v, a.need("other"), t.budget); };
    for (const char* name : {"ne", "!="})
        all[name] = [](const Value& v, Arguments& a, Tools& t) { return !equal(v, a.need("other"), t.budget); };
    for (const char* name : {"lt", "lessthan", "<"}) all[name] = compared([](int way) { return way == -1; });
    for (const char* name : {"le", "<="}) all[name] = compared([](int way) { return way <= 0; });
    for (const char* name : {"gt", "greaterthan", ">"}) all[name] = compared([](int way) { return way == 1; });
    for (const char* name : {"ge", ">="}) all[name] = compared([](int way) { return way == 0 || way == 1; });
    return all;
}

const std::map<std::string, Test, std::less<>>& tests() {
    static const auto all = make_tests();
    return all;
}

}  // namespace

bool is_test(const std::string& name) {
    return tests().contains(name);
}

bool tested(const std::string& name, const Value& subject, Arguments arguments, Tools& tools) {
    const auto found = tests().find(name);
    if (found == tests().end())
        refuse(ErrorCode::unsupported, "expected a test that is known", "found \"" + escaped(name, 60) + '"');
    tools.budget.steps(1);
    const bool holds = found->second(subject, arguments, tools);
    arguments.finish();
    return holds;
}

}  // namespace headscope::tokenizer::chat

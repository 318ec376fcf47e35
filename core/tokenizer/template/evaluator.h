// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ctime>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/tokenizer/template/node.h"
#include "core/tokenizer/template/operations.h"

namespace headscope::tokenizer::chat {

/// Walks a parsed template once. `at` is the place of what is being done: valid when it throws Fault.
class Evaluator {
public:
    using Variables = std::map<std::string, Value, std::less<>>;

    Evaluator(const Variables& variables, const std::tm& now, Budget& budget, std::size_t& at);

    /// The text that it makes. Fault for whatever the template does that cannot be, limits included.
    std::string run(const Body& body);

private:
    enum class Flow { on, leave, next };

    /// Names of a block of its own: loop bodies, macros, with. The root holds what templates set outside of these.
    struct Scope {
        std::map<std::string_view, Value> names;
        Scope* outer = nullptr;
    };
    /// A scope while it lives.
    class Inner;
    /// How deep calls and expressions are in one another.
    class Deeper;

    // Statements (statements.cpp).
    Flow execute(const Body& body);
    Flow execute(const Node& node);
    Flow run_loop(const Node& node);
    Flow run_branch(const Node& node);
    Flow run_with(const Node& node);
    void assign(const Node& target, const Value& value);
    /// The output of a body.
    std::string captured(const Body& body);
    std::string captured_inside(const Body& body);
    void print(const Value& value);
    Value call_macro(const Node& macro, Arguments arguments);

    // Expressions (expressions.cpp).
    Value evaluate(const Node& node);
    Value look_up(std::string_view name) const;
    Value make_dict(const Node& node);
    Value compare_chain(const Node& node);
    Value conditional(const Node& node);
    Value call(const Node& node);
    Value call_ours(const std::string& name, Arguments arguments);
    Value call_filter(const Node& node, const Value* subject);
    Arguments arguments_of(const Node& node);
    Value make_namespace(Arguments arguments);
    Value make_range(Arguments arguments);
    Value date_text(const Value& format) const;

    const Variables& variables_;
    Tools tools_;
    std::size_t& at_;
    int depth_ = 0;
    Scope root_;
    Scope* scope_ = &root_;
    std::string* out_ = nullptr;
    std::deque<Namespace> namespaces_;
};

class Evaluator::Inner {
public:
    Inner(Evaluator& evaluator, Scope* outer) : evaluator_(evaluator), before_(evaluator.scope_) {
        scope_.outer = outer;
        evaluator.scope_ = &scope_;
    }
    explicit Inner(Evaluator& evaluator) : Inner(evaluator, evaluator.scope_) {}
    ~Inner() { evaluator_.scope_ = before_; }
    Inner(const Inner&) = delete;
    Inner& operator=(const Inner&) = delete;

private:
    Evaluator& evaluator_;
    Scope* before_;
    Scope scope_;
};

class Evaluator::Deeper {
public:
    explicit Deeper(int& depth) : depth_(depth) {
        if (depth_ >= 500)
            refuse(ErrorCode::limit, "expected calls and expressions at most 500 deep in one another", "found more");
        ++depth_;
    }
    ~Deeper() { --depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

private:
    int& depth_;
};

}  // namespace headscope::tokenizer::chat

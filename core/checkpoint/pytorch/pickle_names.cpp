// SPDX-License-Identifier: GPL-3.0-or-later
// Opcodes of named things: globals, calls of them, objects and storages.
#include "core/checkpoint/pytorch/pickle_machine.h"

#include <algorithm>

#include "core/base/text/text.h"
#include "core/checkpoint/pytorch/pickle_opcodes.h"

namespace headscope::checkpoint {

namespace {

constexpr std::uint64_t longest_global = 512;

}  // namespace

bool PickleMachine::step_object(unsigned char opcode) {
    switch (opcode) {
        case op::global: {
            const PickleRef module = add_text(PickleKind::text, take_line());
            push(add_global(module, add_text(PickleKind::text, take_line())));
            return true;
        }
        case op::stack_global: {
            const PickleRef name = pop(), module = pop();
            push(add_global(module, name));
            return true;
        }
        case op::reduce: {
            const PickleRef tuple = pop(), function = pop();
            push(call(function, tuple));
            return true;
        }
        case op::newobj: {
            const PickleRef tuple = pop(), type = pop();
            push(make_instance(type, tuple));
            return true;
        }
        case op::newobj_ex: {
            pop();
            const PickleRef tuple = pop(), type = pop();
            push(make_instance(type, tuple));
            return true;
        }
        case op::build:
            pop();
            build(top());
            return true;
        case op::binpersid:
            push(make_storage(pop()));
            return true;
        default:
            return false;
    }
}

std::string_view PickleMachine::take_line() {
    const std::string_view rest = std::string_view(objects_.pickle).substr(at_, longest_global + 1);
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) {
        refuse("expected a name of at most " + std::to_string(longest_global) + " bytes and a line feed",
               "found no line feed");
    }
    at_ += end + 1;
    return rest.substr(0, end);
}

PickleRef PickleMachine::add_object(PickleRef global) {
    return add({PickleKind::object, 0, global, no_ref, 0});
}

PickleRef PickleMachine::add_global(PickleRef module, PickleRef name) {
    if (kind(module) != PickleKind::text || kind(name) != PickleKind::text) {
        refuse("expected the names of a module and of something in it as strings",
               "found " + objects_.describe(module) + " and " + objects_.describe(name));
    }
    const std::string_view module_text = objects_.text(module), name_text = objects_.text(name);
    limit(std::max(module_text.size(), name_text.size()), longest_global, "bytes in the name of a module or class");
    const std::uint32_t index = find_pickle_global(module_text, name_text);
    const PickleRef global = add({PickleKind::global, 0, module, name, index});
    if (pickle_global(index).meaning == PickleGlobal::Meaning::refused) {
        refuse("expected names that belong into a checkpoint",
               "found " + escaped(objects_.global_name(global)) +
                   ": opened with Python, this file may run programs. Nothing of it was run here",
               ErrorCode::unsupported);
    }
    return global;
}

}  // namespace headscope::checkpoint

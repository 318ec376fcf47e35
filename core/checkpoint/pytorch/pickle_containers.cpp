// SPDX-License-Identifier: GPL-3.0-or-later
// Opcodes of tuples, lists, dictionaries and sets.
#include "core/checkpoint/pytorch/pickle_machine.h"

#include "core/checkpoint/pytorch/pickle_opcodes.h"

namespace headscope::checkpoint {

namespace {

constexpr std::uint64_t most_elements = 8U << 20U;

}  // namespace

bool PickleMachine::step_container(unsigned char opcode) {
    switch (opcode) {
        case op::empty_tuple:
            push(empty_tuple_ref);
            return true;
        case op::tuple:
            push(add_sequence(PickleKind::tuple, pop_mark()));
            return true;
        case op::tuple1:
        case op::tuple2:
        case op::tuple3:
            push(add_sequence(PickleKind::tuple, topmost(opcode - op::tuple1 + 1U)));
            return true;
        case op::empty_list:
            push(add({PickleKind::list, 0, no_ref, no_ref, 0}));
            return true;
        case op::empty_dict:
            push(add({PickleKind::dictionary, 0, no_ref, no_ref, 0}));
            return true;
        case op::empty_set:
            push(add_object(no_ref));
            return true;
        case op::frozenset:
            stack_.resize(pop_mark());
            push(add_object(no_ref));
            return true;
        case op::append:
            extend(topmost(1), PickleKind::list);
            return true;
        case op::appends:
            extend(pop_mark(), PickleKind::list);
            return true;
        case op::setitem:
            extend(topmost(2), PickleKind::dictionary);
            return true;
        case op::setitems:
            extend(pop_mark(), PickleKind::dictionary);
            return true;
        case op::additems:
            extend(pop_mark(), PickleKind::object);
            return true;
        default:
            return false;
    }
}

PickleRef PickleMachine::add_sequence(PickleKind kind, std::size_t begin) {
    const PickleRef sequence = add({kind, 0, no_ref, no_ref, 0});
    for (std::size_t i = begin; i < stack_.size(); ++i) append(sequence, no_ref, stack_[i]);
    stack_.resize(begin);
    return sequence;
}

void PickleMachine::append(PickleRef container, PickleRef key, PickleRef value) {
    limit(objects_.elements.size(), most_elements, "elements of lists and dictionaries");
    const auto index = static_cast<std::uint32_t>(objects_.elements.size());
    objects_.elements.push_back({key, value, no_ref});
    PickleNode& node = objects_.nodes[container];
    if (node.first == no_ref)
        node.first = index;
    else
        objects_.elements[node.last].next = index;
    node.last = index;
    ++node.number;
}

void PickleMachine::extend(std::size_t begin, PickleKind wanted) {
    if (begin == (marks_.empty() ? 0 : marks_.back())) refuse("expected a container below the values", "found none");
    const PickleRef container = stack_[begin - 1];
    const PickleKind found = kind(container);
    if (found != wanted && found != PickleKind::object) {
        refuse(wanted == PickleKind::list         ? "expected a list to append to"
               : wanted == PickleKind::dictionary ? "expected a dictionary to put entries in"
                                                  : "expected a set to add to",
               "found " + objects_.describe(container));
    }
    if (found == PickleKind::list) {
        for (std::size_t i = begin; i < stack_.size(); ++i) append(container, no_ref, stack_[i]);
    } else if (found == PickleKind::dictionary) {
        if ((stack_.size() - begin) % 2 != 0)
            refuse("expected keys and values in pairs", "found a key without a value");
        for (std::size_t i = begin; i < stack_.size(); i += 2) {
            const PickleKind key = kind(stack_[i]);
            if (key == PickleKind::list || key == PickleKind::dictionary) {
                refuse("expected a key that Python can look up", "found " + objects_.describe(stack_[i]));
            }
            append(container, stack_[i], stack_[i + 1]);
        }
    }
    stack_.resize(begin);
}

}  // namespace headscope::checkpoint

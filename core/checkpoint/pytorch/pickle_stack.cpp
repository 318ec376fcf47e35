// SPDX-License-Identifier: GPL-3.0-or-later
// Opcodes that move what is there: stack, marks and memo.
#include "core/checkpoint/pytorch/pickle_machine.h"

#include "core/checkpoint/pytorch/pickle_opcodes.h"

namespace headscope::checkpoint {

namespace {

constexpr std::uint64_t most_on_stack = 2U << 20U;
constexpr std::uint64_t most_marks = 1000;

}  // namespace

bool PickleMachine::step_stack(unsigned char opcode) {
    switch (opcode) {
        case op::stop:
            if (stack_.size() != 1 || !marks_.empty()) {
                refuse("expected one value left at the end", "found " + std::to_string(stack_.size()));
            }
            objects_.root = stack_.back();
            stopped_ = true;
            return true;
        case op::mark:
            limit(marks_.size(), most_marks, "open marks");
            marks_.push_back(stack_.size());
            return true;
        case op::pop:
            if (!marks_.empty() && marks_.back() == stack_.size())
                marks_.pop_back();
            else
                pop();
            return true;
        case op::pop_mark:
            stack_.resize(pop_mark());
            return true;
        case op::dup:
            push(top());
            return true;
        case op::binput:
            put(take_number<std::uint8_t>(), top());
            return true;
        case op::long_binput:
            put(take_number<std::uint32_t>(), top());
            return true;
        case op::memoize:
            put(memoized_, top());
            return true;
        case op::binget:
            get(take_number<std::uint8_t>());
            return true;
        case op::long_binget:
            get(take_number<std::uint32_t>());
            return true;
        default:
            return false;
    }
}

void PickleMachine::push(PickleRef ref) {
    limit(stack_.size(), most_on_stack, "values on its stack");
    stack_.push_back(ref);
}

PickleRef PickleMachine::pop() {
    const PickleRef ref = top();
    stack_.pop_back();
    return ref;
}

PickleRef PickleMachine::top() const {
    return stack_[topmost(1)];
}

std::size_t PickleMachine::topmost(std::size_t count) const {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() - floor < count) {
        refuse("expected " + std::to_string(count) + (count == 1 ? " value" : " values") + " on the stack",
               "found " + std::to_string(stack_.size() - floor));
    }
    return stack_.size() - count;
}

std::size_t PickleMachine::pop_mark() {
    if (marks_.empty()) refuse("expected a mark on the stack", "found none");
    const std::size_t begin = marks_.back();
    marks_.pop_back();
    return begin;
}

void PickleMachine::put(std::uint32_t index, PickleRef ref) {
    limit(index, most_objects, "entries in its memo");
    if (index >= memo_.size()) memo_.resize(index + 1, no_ref);
    if (memo_[index] == no_ref) ++memoized_;
    memo_[index] = ref;
}

void PickleMachine::get(std::uint32_t index) {
    if (index >= memo_.size() || memo_[index] == no_ref) {
        refuse("expected a memo entry that was written before", "found number " + std::to_string(index));
    }
    push(memo_[index]);
}

}  // namespace headscope::checkpoint

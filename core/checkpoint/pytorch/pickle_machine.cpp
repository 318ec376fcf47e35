// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/pytorch/pickle_machine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/text.h"
#include "core/checkpoint/pytorch/pickle_opcodes.h"

namespace headscope::checkpoint {
namespace {

constexpr std::uint64_t most_objects = 4U << 20U;
constexpr std::uint64_t most_elements = 8U << 20U;
constexpr std::uint64_t most_on_stack = 2U << 20U;
constexpr std::uint64_t most_marks = 1000;
constexpr std::uint64_t longest_global = 512;

// The constants lie at the same place in every pickle's objects, so that a million of them cost nothing.
constexpr PickleRef none_ref = 0, false_ref = 1, true_ref = 2, empty_tuple_ref = 3;

}  // namespace

PickleMachine::PickleMachine(PickleObjects& objects, const std::string& where, const StorageSize& storage_size)
    : objects_(objects), where_(where), storage_size_(storage_size) {
    add({PickleKind::none, 0, no_ref, no_ref, 0});
    add({PickleKind::boolean, 0, no_ref, no_ref, 0});
    add({PickleKind::boolean, 0, no_ref, no_ref, 1});
    add({PickleKind::tuple, 0, no_ref, no_ref, 0});
}

void PickleMachine::run() {
    const std::string_view pickle = objects_.pickle;
    if (pickle.size() < 2 || static_cast<unsigned char>(pickle[0]) != op::proto) {
        throw Error(ErrorCode::format, where_, "expected a pickle of protocol 2 to 5", "found something else");
    }
    const unsigned version = static_cast<unsigned char>(pickle[1]);
    if (version < 2 || version > 5) {
        throw Error(ErrorCode::unsupported, where_ + ", byte 1", "expected a pickle of protocol 2 to 5",
                    "found protocol " + std::to_string(version));
    }
    at_ = 2;
    while (!stopped_) {
        started_ = at_;
        if (at_ == pickle.size()) refuse("expected a pickle that ends in STOP", "found its end before");
        const auto opcode = static_cast<unsigned char>(pickle[at_++]);
        if (!step_constant(opcode) && !step_text(opcode) && !step_stack(opcode) && !step_container(opcode) &&
            !step_object(opcode)) {
            refuse("expected an opcode that torch.save writes", "found another", ErrorCode::unsupported);
        }
    }
    if (at_ != pickle.size()) {
        refuse("expected nothing behind the pickle", "found " + std::to_string(pickle.size() - at_) + " bytes");
    }
}

bool PickleMachine::step_constant(unsigned char opcode) {
    switch (opcode) {
        case op::none:
            push(none_ref);
            return true;
        case op::new_true:
            push(true_ref);
            return true;
        case op::new_false:
            push(false_ref);
            return true;
        case op::binint:
            push(add({PickleKind::integer, 0, no_ref, no_ref, take_number<std::int32_t>()}));
            return true;
        case op::binint1:
            push(add({PickleKind::integer, 0, no_ref, no_ref, take_number<std::uint8_t>()}));
            return true;
        case op::binint2:
            push(add({PickleKind::integer, 0, no_ref, no_ref, take_number<std::uint16_t>()}));
            return true;
        case op::long1:
            take_long(take_number<std::uint8_t>());
            return true;
        case op::long4: {
            const auto size = take_number<std::int32_t>();
            if (size < 0) refuse("expected a length of 0 or more", "found " + std::to_string(size));
            take_long(static_cast<std::uint64_t>(size));
            return true;
        }
        case op::binfloat:
            take(8);
            push(add({PickleKind::real, 0, no_ref, no_ref, 0}));
            return true;
        default:
            return false;
    }
}

bool PickleMachine::step_text(unsigned char opcode) {
    switch (opcode) {
        case op::short_binunicode:
            push(add_text(PickleKind::text, take(take_number<std::uint8_t>())));
            return true;
        case op::binunicode:
            push(add_text(PickleKind::text, take(take_number<std::uint32_t>())));
            return true;
        case op::binunicode8:
            push(add_text(PickleKind::text, take(take_number<std::uint64_t>())));
            return true;
        case op::short_binstring:  // Python 2's str: read as text, which its names are
            push(add_text(PickleKind::text, take(take_number<std::uint8_t>())));
            return true;
        case op::binstring: {
            const auto size = take_number<std::int32_t>();
            if (size < 0) refuse("expected a length of 0 or more", "found " + std::to_string(size));
            push(add_text(PickleKind::text, take(static_cast<std::uint64_t>(size))));
            return true;
        }
        case op::short_binbytes:
            push(add_text(PickleKind::bytes, take(take_number<std::uint8_t>())));
            return true;
        case op::binbytes:
            push(add_text(PickleKind::bytes, take(take_number<std::uint32_t>())));
            return true;
        case op::binbytes8:
        case op::bytearray8:
            push(add_text(PickleKind::bytes, take(take_number<std::uint64_t>())));
            return true;
        case op::frame: {
            const auto size = take_number<std::uint64_t>();
            if (size > objects_.pickle.size() - at_) {
                refuse("expected a frame within the " + std::to_string(objects_.pickle.size() - at_) + " bytes left",
                       "found one of " + std::to_string(size));
            }
            return true;
        }
        default:
            return false;
    }
}

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

std::string_view PickleMachine::take(std::uint64_t count) {
    const std::uint64_t left = objects_.pickle.size() - at_;
    if (count > left) {
        refuse("expected " + std::to_string(count) + " bytes more", "found " + std::to_string(left) + " to the end");
    }
    const std::string_view bytes = std::string_view(objects_.pickle).substr(at_, static_cast<std::size_t>(count));
    at_ += bytes.size();
    return bytes;
}

template <class Number>
Number PickleMachine::take_number() {
    Number number = 0;
    std::memcpy(&number, take(sizeof number).data(), sizeof number);  // both little-endian
    return number;
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

void PickleMachine::take_long(std::uint64_t size) {
    const std::string_view bytes = take(size);
    if (bytes.size() > 8) {
        push(add({PickleKind::big, 0, no_ref, no_ref, 0}));
        return;
    }
    const bool negative = !bytes.empty() && (static_cast<unsigned char>(bytes.back()) & 0x80U) != 0;
    std::uint64_t value = negative ? UINT64_MAX : 0;
    std::memcpy(&value, bytes.data(), bytes.size());
    push(add({PickleKind::integer, 0, no_ref, no_ref, static_cast<std::int64_t>(value)}));
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

PickleRef PickleMachine::add(PickleNode node) {
    limit(objects_.nodes.size(), most_objects, "objects");
    node.byte = static_cast<std::uint32_t>(started_);
    objects_.nodes.push_back(node);
    return static_cast<PickleRef>(objects_.nodes.size() - 1);
}

PickleRef PickleMachine::add_text(PickleKind kind, std::string_view text) {
    return add({kind, 0, no_ref, static_cast<PickleRef>(text.size()), text.data() - objects_.pickle.data()});
}

PickleRef PickleMachine::add_sequence(PickleKind kind, std::size_t begin) {
    const PickleRef sequence = add({kind, 0, no_ref, no_ref, 0});
    for (std::size_t i = begin; i < stack_.size(); ++i) append(sequence, no_ref, stack_[i]);
    stack_.resize(begin);
    return sequence;
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

std::string PickleMachine::place() const {
    std::string text = where_ + ", byte " + std::to_string(started_);
    if (started_ < objects_.pickle.size()) {
        text += " (" + opcode_name(static_cast<unsigned char>(objects_.pickle[started_])) + ")";
    }
    return text;
}

void PickleMachine::refuse(const std::string& expected, const std::string& found, ErrorCode code) const {
    throw Error(code, place(), expected, found);
}

void PickleMachine::limit(std::uint64_t count, std::uint64_t most, const char* what) const {
    if (count < most) return;
    refuse("expected fewer than " + count_text(most) + " " + what, "found more", ErrorCode::limit);
}

PickleObjects read_pickle(std::string bytes, const std::string& where, const StorageSize& storage_size) {
    if (bytes.size() > largest_pickle) {
        throw Error(ErrorCode::limit, where, "expected at most " + size_text(largest_pickle),
                    "found " + size_text(bytes.size()));
    }
    PickleObjects objects;
    objects.pickle = std::move(bytes);
    PickleMachine(objects, where, storage_size).run();
    return objects;
}

}  // namespace headscope::checkpoint

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/checkpoint/pytorch/pickle_objects.h"
#include "core/checkpoint/pytorch/pickle_reader.h"

namespace headscope::checkpoint {

/// The pickle machine: a stack, marks in it and a memo. pickle_machine.cpp walks through the bytes; the opcodes are
/// parted by what they do, and pickle_calls.cpp has what the named functions amount to.
class PickleMachine {
public:
    PickleMachine(PickleObjects& objects, const std::string& where, const StorageSize& storage_size);
    /// -> where the pickle ends; without `may_go_on` nothing may follow it.
    std::size_t run(bool may_go_on);

private:
    // The constants lie at the same place in every pickle's objects, so that a million of them cost nothing.
    static constexpr PickleRef none_ref = 0, false_ref = 1, true_ref = 2, empty_tuple_ref = 3;
    static constexpr std::uint64_t most_objects = 4U << 20U;

    // Opcodes, by what they do. Each returns false for those of another group.
    bool step_constant(unsigned char opcode);   // pickle_values.cpp
    bool step_text(unsigned char opcode);       // pickle_values.cpp
    bool step_stack(unsigned char opcode);      // pickle_stack.cpp
    bool step_container(unsigned char opcode);  // pickle_containers.cpp
    bool step_object(unsigned char opcode);     // pickle_names.cpp

    // The bytes.
    std::string_view take(std::uint64_t count);
    template <class Number>
    Number take_number() {
        Number number = 0;
        std::memcpy(&number, take(sizeof number).data(), sizeof number);  // both little-endian
        return number;
    }
    std::string_view take_line();
    std::uint64_t take_signed_length();  ///< four bytes, as old protocols write lengths
    void take_long(std::uint64_t size);

    // The stack.
    void push(PickleRef ref);
    PickleRef pop();
    PickleRef top() const;
    std::size_t topmost(std::size_t count) const;  ///< where on the stack its last `count` values begin
    std::size_t pop_mark();                        ///< where on the stack the values above the last mark begin
    void put(std::uint32_t index, PickleRef ref);
    void get(std::uint32_t index);

    // The objects.
    PickleRef add(PickleNode node);
    PickleRef add_text(PickleKind kind, std::string_view text);
    PickleRef add_sequence(PickleKind kind, std::size_t begin);  ///< of the stack's values from there
    PickleRef add_object(PickleRef global);
    PickleRef add_global(PickleRef module, PickleRef name);
    void append(PickleRef container, PickleRef key, PickleRef value);
    /// Moves the stack's values from `begin` into the container below them.
    void extend(std::size_t begin, PickleKind wanted);

    // Calls and builds (pickle_calls.cpp).
    using Arguments = std::vector<PickleRef>;
    Arguments arguments(PickleRef tuple, std::size_t least, std::size_t most) const;
    const PickleGlobal& meaning(PickleRef global) const;
    PickleRef call(PickleRef function, PickleRef tuple);
    PickleRef call_dictionary(PickleRef function, PickleRef tuple);
    PickleRef call_subclass(PickleRef tuple);
    PickleRef make_instance(PickleRef type, PickleRef tuple);
    PickleRef make_tensor(PickleRef tuple, bool own_type);
    PickleRef make_storage(PickleRef id);
    void build(PickleRef object);
    std::int64_t size_of(PickleRef ref, const char* what) const;

    PickleKind kind(PickleRef ref) const { return objects_.nodes[ref].kind; }
    std::string place() const;
    [[noreturn]] void refuse(const std::string& expected, const std::string& found,
                             ErrorCode code = ErrorCode::format) const;
    void limit(std::uint64_t count, std::uint64_t most, const char* what) const;

    PickleObjects& objects_;
    const std::string& where_;
    const StorageSize& storage_size_;
    std::size_t at_ = 0;       ///< the next byte
    std::size_t started_ = 0;  ///< where the current opcode began
    bool stopped_ = false;
    std::vector<PickleRef> stack_;
    std::vector<std::size_t> marks_;
    std::vector<PickleRef> memo_;
    std::uint32_t memoized_ = 0;  ///< how many entries the memo has, for MEMOIZE
};

}  // namespace headscope::checkpoint

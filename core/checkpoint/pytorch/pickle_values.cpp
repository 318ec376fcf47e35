// SPDX-License-Identifier: GPL-3.0-or-later
// Opcodes that push a value of their own: constants, numbers, texts and bytes.
#include "core/checkpoint/pytorch/pickle_machine.h"

#include <cstring>

#include "core/checkpoint/pytorch/pickle_opcodes.h"

namespace headscope::checkpoint {

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
        case op::long4:
            take_long(take_signed_length());
            return true;
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
        case op::binstring:
            push(add_text(PickleKind::text, take(take_signed_length())));
            return true;
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

std::uint64_t PickleMachine::take_signed_length() {
    const auto size = take_number<std::int32_t>();
    if (size < 0) refuse("expected a length of 0 or more", "found " + std::to_string(size));
    return static_cast<std::uint64_t>(size);
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

PickleRef PickleMachine::add_text(PickleKind kind, std::string_view text) {
    return add({kind, 0, no_ref, static_cast<PickleRef>(text.size()), text.data() - objects_.pickle.data()});
}

}  // namespace headscope::checkpoint

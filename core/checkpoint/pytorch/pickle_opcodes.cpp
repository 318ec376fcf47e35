// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/pytorch/pickle_opcodes.h"

#include <cstdio>

namespace headscope::checkpoint {
namespace {

struct Name {
    unsigned char opcode;
    const char* name;
};

constexpr Name opcode_names[] = {
    {op::mark, "MARK"},
    {op::stop, "STOP"},
    {op::pop, "POP"},
    {op::pop_mark, "POP_MARK"},
    {op::dup, "DUP"},
    {op::none, "NONE"},
    {op::new_true, "NEWTRUE"},
    {op::new_false, "NEWFALSE"},
    {op::binint, "BININT"},
    {op::binint1, "BININT1"},
    {op::binint2, "BININT2"},
    {op::long1, "LONG1"},
    {op::long4, "LONG4"},
    {op::binfloat, "BINFLOAT"},
    {op::binunicode, "BINUNICODE"},
    {op::short_binunicode, "SHORT_BINUNICODE"},
    {op::binunicode8, "BINUNICODE8"},
    {op::short_binstring, "SHORT_BINSTRING"},
    {op::binstring, "BINSTRING"},
    {op::binbytes, "BINBYTES"},
    {op::short_binbytes, "SHORT_BINBYTES"},
    {op::binbytes8, "BINBYTES8"},
    {op::bytearray8, "BYTEARRAY8"},
    {op::empty_tuple, "EMPTY_TUPLE"},
    {op::tuple, "TUPLE"},
    {op::tuple1, "TUPLE1"},
    {op::tuple2, "TUPLE2"},
    {op::tuple3, "TUPLE3"},
    {op::empty_list, "EMPTY_LIST"},
    {op::append, "APPEND"},
    {op::appends, "APPENDS"},
    {op::empty_dict, "EMPTY_DICT"},
    {op::setitem, "SETITEM"},
    {op::setitems, "SETITEMS"},
    {op::empty_set, "EMPTY_SET"},
    {op::additems, "ADDITEMS"},
    {op::frozenset, "FROZENSET"},
    {op::global, "GLOBAL"},
    {op::stack_global, "STACK_GLOBAL"},
    {op::reduce, "REDUCE"},
    {op::build, "BUILD"},
    {op::newobj, "NEWOBJ"},
    {op::newobj_ex, "NEWOBJ_EX"},
    {op::binput, "BINPUT"},
    {op::long_binput, "LONG_BINPUT"},
    {op::memoize, "MEMOIZE"},
    {op::binget, "BINGET"},
    {op::long_binget, "LONG_BINGET"},
    {op::binpersid, "BINPERSID"},
    {op::proto, "PROTO"},
    {op::frame, "FRAME"},
    // Refused: protocols 0 and 1, extension codes, buffers that lie elsewhere.
    {'F', "FLOAT"},
    {'I', "INT"},
    {'L', "LONG"},
    {'P', "PERSID"},
    {'S', "STRING"},
    {'V', "UNICODE"},
    {'d', "DICT"},
    {'g', "GET"},
    {'i', "INST"},
    {'l', "LIST"},
    {'o', "OBJ"},
    {'p', "PUT"},
    {0x82, "EXT1"},
    {0x83, "EXT2"},
    {0x84, "EXT4"},
    {0x97, "NEXT_BUFFER"},
    {0x98, "READONLY_BUFFER"},
};

}  // namespace

std::string opcode_name(unsigned char opcode) {
    for (const Name& one : opcode_names) {
        if (one.opcode == opcode) return one.name;
    }
    char text[8];
    std::snprintf(text, sizeof text, "0x%02X", opcode);
    return text;
}

}  // namespace headscope::checkpoint

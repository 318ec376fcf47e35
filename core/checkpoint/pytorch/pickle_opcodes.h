// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace headscope::checkpoint {

/// The opcodes of pickle protocols 2 to 5 that are read.
namespace op {
constexpr unsigned char mark = '(', stop = '.', pop = '0', pop_mark = '1', dup = '2', none = 'N', new_true = 0x88,
                        new_false = 0x89, binint = 'J', binint1 = 'K', binint2 = 'M', long1 = 0x8A, long4 = 0x8B,
                        binfloat = 'G', binunicode = 'X', short_binunicode = 0x8C, binunicode8 = 0x8D,
                        short_binstring = 'U', binstring = 'T', binbytes = 'B', short_binbytes = 'C', binbytes8 = 0x8E,
                        bytearray8 = 0x96, empty_tuple = ')', tuple = 't', tuple1 = 0x85, tuple2 = 0x86, tuple3 = 0x87,
                        empty_list = ']', append = 'a', appends = 'e', empty_dict = '}', setitem = 's', setitems = 'u',
                        empty_set = 0x8F, additems = 0x90, frozenset = 0x91, global = 'c', stack_global = 0x93,
                        reduce = 'R', build = 'b', newobj = 0x81, newobj_ex = 0x92, binput = 'q', long_binput = 'r',
                        memoize = 0x94, binget = 'h', long_binget = 'j', binpersid = 'Q', proto = 0x80, frame = 0x95;
}  // namespace op

/// Python's name of an opcode, of those that are refused too; its number for bytes that are none.
std::string opcode_name(unsigned char opcode);

}  // namespace headscope::checkpoint

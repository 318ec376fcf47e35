// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Content of a pickle as plain data: numbers, texts, containers, and records of the objects that it requests. Nothing
// in it is ever called or imported. Values refer to each other by number and live in two flat lists: sharing and cycles
// cost nothing, freeing needs no recursion, and memory is bounded by the number of opcodes.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/pytorch/pickle_globals.h"

namespace headscope::checkpoint {

using PickleRef = std::uint32_t;
constexpr PickleRef no_ref = UINT32_MAX;

enum class PickleKind : std::uint8_t {
    none,
    boolean,     ///< number
    integer,     ///< number
    big,         ///< an integer beyond 64 bits; its value is not kept
    real,        ///< its value is not kept
    text,        ///< number, size: where in the pickle
    bytes,       ///< number, size
    tuple,       ///< first, last, number of elements
    list,        ///< first, last, number of elements
    dictionary,  ///< first, last, number of entries, a key that comes again counted again
    global,      ///< first, last: texts of its module and name; number: index of what it means (pickle_globals.h)
    storage,     ///< first: its type's global; last: its key's text; number: elements
    tensor,      ///< number: index into PickleObjects::tensors
    object,      ///< of a class or function that is not known or not needed; first: its global, or no_ref for sets
};

struct PickleNode {
    PickleKind kind = PickleKind::none;
    std::uint32_t byte = 0;  ///< position of the opcode that made it
    PickleRef first = no_ref;
    PickleRef last = no_ref;
    std::int64_t number = 0;
};

struct PickleElement {
    PickleRef key = no_ref;  ///< of dictionaries only
    PickleRef value = no_ref;
    std::uint32_t next = no_ref;
};

/// A view into a storage, checked to lie within it.
struct PickleTensor {
    PickleRef storage = no_ref;
    PickleRef sizes = no_ref;    ///< a tuple of integers
    PickleRef strides = no_ref;  ///< as many
    std::int64_t offset = 0;     ///< elements
    TorchType type;
    bool altered = false;  ///< conjugated or negated on reading
};

class PickleObjects {
public:
    const PickleNode& operator[](PickleRef ref) const { return nodes[ref]; }
    std::string_view text(PickleRef ref) const;  ///< of a text or bytes; empty for others
    std::vector<std::int64_t> integers(PickleRef tuple) const;
    std::string global_name(PickleRef global) const;  ///< "collections.OrderedDict", not escaped
    /// For errors: "a list", "an object of the class argparse.Namespace", escaped.
    std::string describe(PickleRef ref) const;

    std::string pickle;  ///< the texts are views into it
    std::deque<PickleNode> nodes;
    std::deque<PickleElement> elements;
    std::deque<PickleTensor> tensors;
    PickleRef root = no_ref;
};

}  // namespace headscope::checkpoint

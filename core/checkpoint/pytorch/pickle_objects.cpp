// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/pytorch/pickle_objects.h"

#include "core/base/error.h"

namespace headscope::checkpoint {

std::string_view PickleObjects::text(PickleRef ref) const {
    const PickleNode& node = nodes[ref];
    if (node.kind != PickleKind::text && node.kind != PickleKind::bytes) return {};
    return std::string_view(pickle).substr(static_cast<std::size_t>(node.number), node.last);
}

std::vector<std::int64_t> PickleObjects::integers(PickleRef tuple) const {
    std::vector<std::int64_t> values;
    for (std::uint32_t at = nodes[tuple].first; at != no_ref; at = elements[at].next) {
        values.push_back(nodes[elements[at].value].number);
    }
    return values;
}

std::string PickleObjects::global_name(PickleRef global) const {
    const PickleNode& node = nodes[global];
    return std::string(text(node.first)) + "." + std::string(text(node.last));
}

std::string PickleObjects::describe(PickleRef ref) const {
    const PickleNode& node = nodes[ref];
    switch (node.kind) {
        case PickleKind::none:
            return "None";
        case PickleKind::boolean:
            return "a bool";
        case PickleKind::integer:
        case PickleKind::big:
            return "an int";
        case PickleKind::real:
            return "a float";
        case PickleKind::text:
            return "a string";
        case PickleKind::bytes:
            return "bytes";
        case PickleKind::tuple:
            return "a tuple";
        case PickleKind::list:
            return "a list";
        case PickleKind::dictionary:
            return "a dictionary";
        case PickleKind::global:
            return "a reference to " + escaped(global_name(ref));
        case PickleKind::storage:
            return "a storage";
        case PickleKind::tensor:
            return "a tensor";
        case PickleKind::object:
            return node.first == no_ref ? "a set" : "an object made by " + escaped(global_name(node.first));
    }
    return "something else";
}

}  // namespace headscope::checkpoint

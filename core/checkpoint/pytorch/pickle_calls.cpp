// SPDX-License-Identifier: GPL-3.0-or-later

#include "core/base/text/text.h"
#include "core/checkpoint/pytorch/pickle_machine.h"

namespace headscope::checkpoint {
namespace {

using Meaning = PickleGlobal::Meaning;

constexpr std::size_t most_dimensions = 64;

}  // namespace

const PickleGlobal& PickleMachine::meaning(PickleRef global) const {
    if (kind(global) != PickleKind::global) {
        refuse("expected the name of a class or function", "found " + objects_.describe(global));
    }
    return pickle_global(static_cast<std::uint32_t>(objects_.nodes[global].number));
}

PickleMachine::Arguments PickleMachine::arguments(PickleRef tuple, std::size_t least, std::size_t most) const {
    const PickleNode& node = objects_.nodes[tuple];
    const auto count = static_cast<std::uint64_t>(node.number);
    if (node.kind != PickleKind::tuple || count < least || count > most) {
        refuse("expected " + std::to_string(least) + (most > least ? " to " + std::to_string(most) : "") + " arguments",
               "found " + (node.kind == PickleKind::tuple ? std::to_string(count) : objects_.describe(tuple)));
    }
    Arguments values;
    for (std::uint32_t at = node.first; at != no_ref; at = objects_.elements[at].next) {
        values.push_back(objects_.elements[at].value);
    }
    return values;
}

PickleRef PickleMachine::call(PickleRef function, PickleRef tuple) {
    const Meaning what = meaning(function).meaning;
    if (kind(tuple) != PickleKind::tuple) refuse("expected a tuple of arguments", "found " + objects_.describe(tuple));
    switch (what) {
        case Meaning::harmless:
        case Meaning::other_tensor:
            return add_object(function);
        case Meaning::dictionary:
            return call_dictionary(function, tuple);
        case Meaning::size: {
            const PickleRef sizes = arguments(tuple, 1, 1).front();
            if (kind(sizes) != PickleKind::tuple) refuse("expected a tuple", "found " + objects_.describe(sizes));
            return sizes;
        }
        case Meaning::tensor:
            return make_tensor(tuple, false);
        case Meaning::tensor_v3:
            return make_tensor(tuple, true);
        case Meaning::tensor_class:
        case Meaning::parameter: {
            const PickleRef tensor = arguments(tuple, 1, 4).front();
            if (kind(tensor) != PickleKind::tensor && kind(tensor) != PickleKind::object) {
                refuse("expected a tensor as the parameter's value", "found " + objects_.describe(tensor));
            }
            return tensor;
        }
        case Meaning::subclass:
            return call_subclass(tuple);
        case Meaning::storage_type:
        case Meaning::type:
        case Meaning::unknown:
        case Meaning::refused:
            break;
    }
    refuse("expected calls of what rebuilds tensors and of harmless types only",
           "found one of " + escaped(objects_.global_name(function)) +
               ", which is not made. If you trust the file, save its state_dict() alone",
           ErrorCode::unsupported);
}

PickleRef PickleMachine::call_dictionary(PickleRef function, PickleRef tuple) {
    // OrderedDict() and defaultdict(factory) are filled afterwards; what is filled by its arguments is not looked into.
    const PickleNode& node = objects_.nodes[tuple];
    const bool empty =
        node.number == 0 || (node.number == 1 && kind(objects_.elements[node.first].value) == PickleKind::global);
    return empty ? add({PickleKind::dictionary, 0, no_ref, no_ref, 0}) : add_object(function);
}

PickleRef PickleMachine::call_subclass(PickleRef tuple) {
    const Arguments given = arguments(tuple, 4, 4);  // function, type, arguments, state
    const Meaning inner = meaning(given[0]).meaning;
    const Meaning type = meaning(given[1]).meaning;
    if (inner == Meaning::subclass) refuse("expected a function that rebuilds a tensor", "found itself again");
    const PickleRef made = call(given[0], given[2]);
    // An unknown subclass may change the numbers.
    return type == Meaning::tensor_class ? made : add_object(given[1]);
}

PickleRef PickleMachine::make_instance(PickleRef type, PickleRef tuple) {
    if (kind(tuple) != PickleKind::tuple) refuse("expected a tuple of arguments", "found " + objects_.describe(tuple));
    switch (meaning(type).meaning) {
        case Meaning::unknown:
        case Meaning::harmless:
        case Meaning::tensor_class:
            return add_object(type);
        case Meaning::dictionary:
            return call_dictionary(type, tuple);
        case Meaning::size:
            return call(type, tuple);
        default:
            refuse("expected a class to make an instance of", "found " + escaped(objects_.global_name(type)));
    }
}

void PickleMachine::build(PickleRef object) {
    // A dictionary's attributes (_metadata) and what objects consist of are not looked at.
    if (kind(object) == PickleKind::dictionary || kind(object) == PickleKind::object) return;
    refuse("expected an object that takes a state", "found " + objects_.describe(object), ErrorCode::unsupported);
}

std::int64_t PickleMachine::size_of(PickleRef ref, const char* what) const {
    const PickleNode& node = objects_.nodes[ref];
    if (node.kind != PickleKind::integer || node.number < 0) {
        refuse(std::string("expected ") + what + " from 0 to 2^63",
               "found " + (node.kind == PickleKind::integer ? std::to_string(node.number) : objects_.describe(ref)));
    }
    return node.number;
}

PickleRef PickleMachine::make_storage(PickleRef id) {
    const std::string wish = "expected a storage: its type, key, place and number of elements";
    const PickleNode& node = objects_.nodes[id];
    const bool legacy = !storage_size_;
    if (node.kind != PickleKind::tuple || (node.number != 5 && !legacy)) refuse(wish, "found " + objects_.describe(id));
    const Arguments given = arguments(id, legacy ? 4 : 5, legacy ? 6 : 5);
    // A whole module's class, with its source.
    if (given.size() == 4 && kind(given[0]) == PickleKind::text && objects_.text(given[0]) == "module") return given[1];
    if (given.size() == 4) refuse(wish, "found 4 values");
    if (given.size() == 6 && kind(given[5]) != PickleKind::none)
        refuse("expected storages of their own", "found a view of another", ErrorCode::unsupported);
    if (kind(given[0]) != PickleKind::text || objects_.text(given[0]) != "storage") refuse(wish, "found another tag");
    if (meaning(given[1]).meaning != Meaning::storage_type) refuse(wish, "found " + objects_.describe(given[1]));
    if (kind(given[2]) != PickleKind::text) refuse(wish, "found " + objects_.describe(given[2]) + " as key");
    const TorchType& type = meaning(given[1]).type;
    const auto elements = static_cast<std::uint64_t>(size_of(given[4], "a number of elements"));
    const std::string_view key = objects_.text(given[2]);
    std::uint64_t bytes = 0;
    const bool overflow = __builtin_mul_overflow(elements, std::uint64_t{type.bytes}, &bytes);
    const auto member = legacy ? std::optional(overflow ? std::uint64_t{0} : bytes) : storage_size_(key);
    if (!member) {
        refuse("expected a member of the archive for each storage", "found none for \"" + escaped(key) + '"');
    }
    // Bytes that do not make up an element can be left: a storage may have been made of another type.
    if (overflow || bytes > *member || *member - bytes >= type.bytes) {
        refuse("expected storage \"" + escaped(key) + "\" to have " + std::to_string(elements) + " elements of " +
                   std::to_string(type.bytes) + " bytes",
               "found " + std::to_string(*member) + " bytes in its member");
    }
    return add({PickleKind::storage, 0, given[1], given[2], static_cast<std::int64_t>(elements)});
}

PickleRef PickleMachine::make_tensor(PickleRef tuple, bool own_type) {
    // storage, offset, sizes, strides, requires_grad, hooks, (type of v3,) metadata
    const Arguments given = own_type ? arguments(tuple, 7, 8) : arguments(tuple, 4, 7);
    if (kind(given[0]) != PickleKind::storage) refuse("expected a storage", "found " + objects_.describe(given[0]));
    const PickleNode& storage = objects_.nodes[given[0]];
    PickleTensor tensor;
    tensor.storage = given[0];
    tensor.type = meaning(storage.first).type;
    std::uint64_t capacity = static_cast<std::uint64_t>(storage.number);
    if (own_type) {
        if (meaning(given[6]).meaning != Meaning::type) {
            refuse("expected an element type", "found " + objects_.describe(given[6]));
        }
        const std::uint64_t bytes = capacity * tensor.type.bytes;  // fits: it is at most the member's size
        tensor.type = meaning(given[6]).type;
        capacity = bytes / tensor.type.bytes;
    }
    tensor.offset = size_of(given[1], "an offset");
    tensor.sizes = given[2];
    tensor.strides = given[3];
    const Arguments sizes = arguments(given[2], 0, most_dimensions);
    const Arguments strides = arguments(given[3], sizes.size(), sizes.size());
    bool empty = false;
    std::uint64_t last = static_cast<std::uint64_t>(tensor.offset);  // the last element's place in the storage
    bool overflow = false;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const auto size = static_cast<std::uint64_t>(size_of(sizes[i], "sizes"));
        const auto stride = static_cast<std::uint64_t>(size_of(strides[i], "strides"));
        std::uint64_t step = 0;
        empty = empty || size == 0;
        if (size == 0) continue;
        overflow = overflow || __builtin_mul_overflow(size - 1, stride, &step);
        overflow = overflow || __builtin_add_overflow(last, step, &last);
    }
    if (empty) {
        last = static_cast<std::uint64_t>(tensor.offset);
        overflow = false;
    }
    if (overflow || last > capacity || (last == capacity && !empty)) {
        refuse(
            "expected a tensor within the " + std::to_string(capacity) + " elements of its storage \"" +
                escaped(objects_.text(storage.last)) + '"',
            overflow ? "found one that reaches beyond 2^64" : "found one that reads element " + std::to_string(last));
    }
    const std::size_t metadata = own_type ? 7 : 6;
    if (given.size() > metadata) {
        const PickleNode& marks = objects_.nodes[given[metadata]];
        tensor.altered = marks.kind != PickleKind::none && (marks.kind != PickleKind::dictionary || marks.number != 0);
    }
    objects_.tensors.push_back(tensor);
    return add({PickleKind::tensor, 0, no_ref, no_ref, static_cast<std::int64_t>(objects_.tensors.size() - 1)});
}

}  // namespace headscope::checkpoint

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/pytorch/pickle_machine.h"

#include <utility>

#include "core/base/text/text.h"
#include "core/checkpoint/pytorch/pickle_opcodes.h"

namespace headscope::checkpoint {

PickleMachine::PickleMachine(PickleObjects& objects, const std::string& where, const StorageSize& storage_size)
    : objects_(objects), where_(where), storage_size_(storage_size) {
    add({PickleKind::none, 0, no_ref, no_ref, 0});
    add({PickleKind::boolean, 0, no_ref, no_ref, 0});
    add({PickleKind::boolean, 0, no_ref, no_ref, 1});
    add({PickleKind::tuple, 0, no_ref, no_ref, 0});
}

std::size_t PickleMachine::run(bool may_go_on) {
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
    if (at_ != pickle.size() && !may_go_on) {
        refuse("expected nothing behind the pickle", "found " + std::to_string(pickle.size() - at_) + " bytes");
    }
    return at_;
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

PickleRef PickleMachine::add(PickleNode node) {
    limit(objects_.nodes.size(), most_objects, "objects");
    node.byte = static_cast<std::uint32_t>(started_);
    objects_.nodes.push_back(node);
    return static_cast<PickleRef>(objects_.nodes.size() - 1);
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

PickleObjects read_pickle(std::string bytes, const std::string& where, const StorageSize& storage_size,
                          std::size_t* behind) {
    if (bytes.size() > largest_pickle) {
        throw Error(ErrorCode::limit, where, "expected at most " + size_text(largest_pickle),
                    "found " + size_text(bytes.size()));
    }
    PickleObjects objects;
    objects.pickle = std::move(bytes);
    const std::size_t end = PickleMachine(objects, where, storage_size).run(behind != nullptr);
    if (behind) *behind = end;
    return objects;
}

}  // namespace headscope::checkpoint

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/pytorch/state_dict.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/checkpoint/most_tensors.h"

namespace headscope::checkpoint {
namespace {

/// Keys under which training loops put the weights, most likely first.
constexpr std::string_view usual_names[] = {"state_dict", "model_state_dict", "model_state", "model",
                                            "module",     "network",          "net",         "weights"};

constexpr std::size_t deepest = 32;
constexpr std::size_t longest_name = 4096;

class Finder {
public:
    Finder(const PickleObjects& objects, const std::string& where) : objects_(objects), where_(where) {}

    StateDict find() {
        const PickleNode& root = objects_[objects_.root];
        if (root.kind != PickleKind::dictionary) refuse_root();
        PickleRef weights = objects_.root;
        std::string path;
        for (std::size_t depth = 0; depth < deepest; ++depth) {
            const PickleRef next = usual_entry(weights);
            if (next == no_ref) break;
            const PickleElement& element = objects_.elements[next];
            path += (path.empty() ? "" : ".") + std::string(objects_.text(element.key));
            note_others(weights, next, path);
            weights = element.value;
        }
        visited_.clear();
        collect(weights, "", 0);
        if (!any_tensor_) {
            for (const StateDict::Entry& entry : result_.entries)
                left_out_.push_back(described(entry.name, entry.value));
            throw Error(ErrorCode::format, where_, "expected a dictionary of tensors",
                        left_out_.empty() ? "found an empty dictionary"
                                          : "found a dictionary without tensors: " + list_text(left_out_, 5));
        }
        if (!left_out_.empty()) result_.notes.push_back("not tensors, and not read: " + list_text(left_out_));
        require_distinct();
        return std::move(result_);
    }

private:
    [[noreturn]] void refuse_root() const {
        const PickleNode& root = objects_[objects_.root];
        const bool whole = root.kind == PickleKind::object;
        throw Error(whole ? ErrorCode::unsupported : ErrorCode::format, where_, "expected a dictionary of tensors",
                    "found " + objects_.describe(objects_.root) +
                        (whole ? ": if that is a whole model, save its state_dict() instead" : ""));
    }

    bool is_text(PickleRef ref) const { return ref != no_ref && objects_[ref].kind == PickleKind::text; }

    /// Digits of a key that counts layers, as in {0: tensor, 1: tensor}; empty for another key.
    std::string number_key(PickleRef ref) const {
        if (ref == no_ref || objects_[ref].kind != PickleKind::integer) return {};
        const auto number = static_cast<std::int64_t>(objects_[ref].number);
        return number < 0 ? std::string() : std::to_string(number);
    }

    /// Calls use(index of the element) for each entry.
    template <class Use>
    void each(PickleRef dictionary, const Use& use) const {
        for (std::uint32_t at = objects_[dictionary].first; at != no_ref; at = objects_.elements[at].next) use(at);
    }

    /// True if a tensor lies in the dictionary or in dictionaries in it. Each is looked into once.
    bool has_tensors(PickleRef start) const {
        std::unordered_set<PickleRef> seen{start};
        std::vector<PickleRef> open{start};
        while (!open.empty()) {
            const PickleRef dictionary = open.back();
            open.pop_back();
            for (std::uint32_t at = objects_[dictionary].first; at != no_ref; at = objects_.elements[at].next) {
                const PickleRef value = objects_.elements[at].value;
                if (objects_[value].kind == PickleKind::tensor) return true;
                if (objects_[value].kind == PickleKind::dictionary && seen.insert(value).second) open.push_back(value);
            }
        }
        return false;
    }

    /// The element of `dictionary` with the likeliest name under which a dictionary with tensors lies.
    std::uint32_t usual_entry(PickleRef dictionary) const {
        for (const std::string_view name : usual_names) {
            std::uint32_t found = no_ref;
            each(dictionary, [&](std::uint32_t at) {
                const PickleElement& element = objects_.elements[at];
                if (is_text(element.key) && objects_.text(element.key) == name) found = at;
            });
            if (found == no_ref) continue;
            const PickleRef value = objects_.elements[found].value;
            if (objects_[value].kind == PickleKind::dictionary && has_tensors(value)) return found;
        }
        return no_ref;
    }

    std::string label(const PickleElement& element) const {
        return described(is_text(element.key) ? std::string(objects_.text(element.key).substr(0, longest_name))
                                              : objects_.describe(element.key) + " as a key",
                         element.value);
    }

    /// "args (argparse.Namespace)"
    std::string described(const std::string& name, PickleRef value) const {
        const PickleNode& node = objects_[value];
        if (node.kind != PickleKind::object || node.first == no_ref) return name;
        return name + " (" + objects_.global_name(node.first) + ")";
    }

    /// True for a tensor or a possible one; `sure` distinguishes them.
    bool may_be_tensor(PickleRef value, bool& sure) const {
        const PickleNode& node = objects_[value];
        sure = node.kind == PickleKind::tensor;
        if (node.kind != PickleKind::object || node.first == no_ref) return sure;
        const auto meaning = pickle_global(static_cast<std::uint32_t>(objects_[node.first].number)).meaning;
        sure = meaning == PickleGlobal::Meaning::other_tensor;
        return meaning != PickleGlobal::Meaning::harmless;
    }

    void note_others(PickleRef dictionary, std::uint32_t taken, const std::string& path) {
        std::vector<std::string> others;
        each(dictionary, [&](std::uint32_t at) {
            if (at != taken && others.size() < 100) others.push_back(label(objects_.elements[at]));
        });
        std::string note = "the weights lie under \"" + escaped(path) + '"';
        if (!others.empty()) note += "; beside them, and not read: " + list_text(others);
        result_.notes.push_back(std::move(note));
    }

    void collect(PickleRef dictionary, const std::string& prefix, std::size_t depth) {
        if (depth == deepest) refuse_limit("fewer than " + std::to_string(deepest) + " dictionaries in each other");
        if (!visited_.insert(dictionary).second) return;  // shared, or in itself
        each(dictionary, [&](std::uint32_t at) {
            const PickleElement& element = objects_.elements[at];
            const PickleNode& value = objects_[element.value];
            bool sure = false;
            const bool tensor = may_be_tensor(element.value, sure);
            const bool inner = value.kind == PickleKind::dictionary && has_entries(element.value);
            const std::string number = sure ? number_key(element.key) : std::string();
            if ((!tensor && !inner) || (!is_text(element.key) && number.empty())) {
                if (left_out_.size() < 1000) left_out_.push_back(prefix + label(element));
                return;
            }
            const std::string_view key = number.empty() ? objects_.text(element.key) : std::string_view(number);
            if (prefix.size() + key.size() > longest_name) {
                refuse_limit("names of at most " + std::to_string(longest_name) + " bytes");
            }
            const std::string name = prefix + std::string(key);
            if (const std::size_t bad = find_invalid_utf8(name); bad != std::string_view::npos) {
                throw Error(ErrorCode::format, where_ + ", byte " + std::to_string(objects_[element.key].byte),
                            "expected names in UTF-8", "found \"" + escaped(name) + '"');
            }
            if (inner) {
                collect(element.value, name + ".", depth + 1);
                return;
            }
            // A name costs memory of its own beside the few bytes that repeat a tensor.
            names_bytes_ += name.size() + 64;
            if (names_bytes_ > (16U << 20U) + 16 * objects_.pickle.size()) refuse_limit("shorter names, or fewer");
            if (result_.entries.size() == most_tensors)
                refuse_limit("at most " + count_text(most_tensors) + " tensors");
            any_tensor_ = any_tensor_ || sure;
            result_.entries.push_back({name, element.value});
        });
    }

    bool has_entries(PickleRef dictionary) const { return objects_[dictionary].first != no_ref; }

    void require_distinct() const {
        std::set<std::string_view> names;
        for (const StateDict::Entry& entry : result_.entries) {
            if (!names.insert(entry.name).second) {
                throw Error(ErrorCode::mismatch, where_, "expected each tensor's name once",
                            "found \"" + escaped(entry.name) + "\" again");
            }
        }
    }

    [[noreturn]] void refuse_limit(const std::string& what) const {
        throw Error(ErrorCode::limit, where_, "expected " + what, "found more");
    }

    const PickleObjects& objects_;
    const std::string& where_;
    std::unordered_set<PickleRef> visited_;
    std::size_t names_bytes_ = 0;
    bool any_tensor_ = false;
    std::vector<std::string> left_out_;
    StateDict result_;
};

}  // namespace

StateDict find_state_dict(const PickleObjects& objects, const std::string& where) {
    return Finder(objects, where).find();
}

std::string common_prefix(const std::vector<std::string>& names) {
    std::string prefix;
    for (bool longer = !names.empty(); longer;) {
        longer = false;
        for (const std::string_view part : {"module.", "_orig_mod."}) {
            const std::string tried = prefix + std::string(part);
            longer = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
                return name.size() > tried.size() && name.starts_with(tried);
            });
            if (!longer) continue;
            prefix = tried;
            break;
        }
    }
    return prefix;
}

}  // namespace headscope::checkpoint

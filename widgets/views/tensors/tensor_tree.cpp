// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/tensors/tensor_tree.h"

#include <algorithm>

namespace headscope::widgets {
namespace {

constexpr std::size_t kLong = 1000;
constexpr std::size_t kMostSorted = 50'000;  ///< children beyond stay in the order of bytes

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool contains(std::string_view name, std::string_view word) {
    return std::search(name.begin(), name.end(), word.begin(), word.end(),
                       [](char a, char b) { return lower(a) == b; }) != name.end();
}

std::vector<std::string> words_of(const std::string& text) {
    std::vector<std::string> words(1);
    for (const char c : text) {
        if (c != ' ')
            words.back() += lower(c);
        else if (!words.back().empty())
            words.emplace_back();
    }
    if (words.back().empty()) words.pop_back();
    return words;
}

bool is_number(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Numbers by value, before words; words by their bytes.
bool comes_before(std::string_view a, std::string_view b) {
    const bool a_number = is_number(a), b_number = is_number(b);
    if (a_number != b_number) return a_number;
    if (a_number && a.size() != b.size()) return a.size() < b.size();
    return a < b;
}

}  // namespace

TensorTree::TensorTree(std::shared_ptr<const TensorTable> table, const TensorFilter& filter,
                       const Cancellation& cancellation)
    : table_(std::move(table)), bytes_{0}, elements_{0} {
    const auto words = words_of(filter.text);
    for (std::size_t i = 0; i < table_->rows.size(); ++i) {
        if (i % 4096 == 0) cancellation.check();
        const TensorRow& row = table_->rows[i];
        const auto status = static_cast<std::size_t>(row.status);
        ++totals_[status];
        if (!filter.statuses[status]) continue;
        if (!std::all_of(words.begin(), words.end(), [&](const auto& word) { return contains(row.name, word); }))
            continue;
        rows_.push_back(static_cast<std::uint32_t>(i));
        bytes_.push_back(bytes_.back() + row.bytes);
        elements_.push_back(elements_.back() + row.elements);
    }
}

std::string_view TensorTree::label(const Branch& branch) const {
    return std::string_view(row(branch.begin).name).substr(branch.label, branch.name - branch.label);
}

std::string_view TensorTree::path(const Branch& branch) const {
    if (branch.begin == branch.end) return {};
    return std::string_view(row(branch.begin).name).substr(0, branch.name);
}

std::vector<TensorTree::Branch> TensorTree::children(const Branch& branch) const {
    std::vector<Branch> children;
    if (branch.leaf) return children;
    // The common prefix of its rows ends with a dot, or is empty at the root.
    const std::size_t from = branch.root ? 0 : branch.name + 1;
    for (std::size_t at = branch.begin; at < branch.end;) {
        const std::string& name = row(at).name;
        const std::size_t dot = name.find('.', from);
        if (dot == std::string::npos || dot + 1 == name.size()) {
            children.push_back({at, at + 1, from, name.size(), true, false});
            ++at;
            continue;
        }
        // The first row that does not begin like this one: '/' follows '.' in the order of bytes.
        std::string next = name.substr(0, dot);
        next += '/';
        const auto begin = rows_.begin() + static_cast<std::ptrdiff_t>(at);
        const auto end = rows_.begin() + static_cast<std::ptrdiff_t>(branch.end);
        const auto stop = std::lower_bound(
            begin, end, next, [this](std::uint32_t r, const std::string& key) { return table_->rows[r].name < key; });
        children.push_back({at, static_cast<std::size_t>(stop - rows_.begin()), from, dot, false, false});
        at = children.back().end;
    }
    for (Branch& child : children) {
        while (!child.leaf) {  // a single one below: "model.layers"
            const std::string& first = row(child.begin).name;
            const std::string& last = row(child.end - 1).name;
            const std::size_t dot = first.find('.', child.name + 1);
            if (child.end - child.begin == 1) {
                child.name = first.size();
                child.leaf = true;
                break;
            }
            if (dot == std::string::npos || dot + 1 == first.size()) break;
            if (last.compare(0, dot + 1, first, 0, dot + 1) != 0) break;
            child.name = dot;
        }
    }
    if (children.size() <= kMostSorted)
        std::stable_sort(children.begin(), children.end(),
                         [this](const Branch& a, const Branch& b) { return comes_before(label(a), label(b)); });
    if (children.size() > kLong)  // branches are not lost among thousands of leaves
        std::stable_partition(children.begin(), children.end(), [](const Branch& child) { return !child.leaf; });
    return children;
}

std::size_t TensorTree::find(std::string_view name) const {
    const auto place =
        std::lower_bound(rows_.begin(), rows_.end(), name,
                         [this](std::uint32_t r, std::string_view key) { return table_->rows[r].name < key; });
    const bool found = place != rows_.end() && table_->rows[*place].name == name;
    return found ? static_cast<std::size_t>(place - rows_.begin()) : rows_.size();
}

}  // namespace headscope::widgets
